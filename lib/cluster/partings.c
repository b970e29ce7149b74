#include "cluster/partings.h"

// That of the two, or else the one to be forgotten for it.
static struct placement_parting *find_place(struct partings *p, uint32_t one, uint32_t other) {
    struct placement_parting *first = p->items;
    for (uint32_t i = 0; i < p->count; i++) {
        if (placement_parts(&p->items[i], one, other))
            return &p->items[i];
        if (p->items[i].until < first->until)
            first = &p->items[i];
    }
    return p->count < PLACEMENT_PARTINGS ? &p->items[p->count++] : first;
}

void partings_add(struct partings *p, uint32_t one, uint32_t other, double until) {
    *find_place(p, one, other) = (struct placement_parting){one, other, until};
}

void partings_expire(struct partings *p, double now) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->items[i].until > now)
            p->items[kept++] = p->items[i];
    p->count = kept;
}
