#include "net/debt.h"

#include <stdbool.h>

enum debt_verdict debt_add(struct debt *debt, uint64_t request, size_t bytes) {
    if (debt->count == DEBT_MOST)
        return DEBT_BEYOND;
    bool busy = debt->bytes + bytes > DEBT_BYTES;
    debt->entries[debt->count++] = (struct debt_entry){request, bytes};
    debt->bytes += bytes;
    return busy ? DEBT_BUSY : DEBT_FINE;
}

static struct debt_entry *find_entry(struct debt *debt, uint64_t request) {
    for (uint32_t i = 0; i < debt->count; i++)
        if (debt->entries[i].request == request)
            return &debt->entries[i];
    return NULL;
}

void debt_answer(struct debt *debt, uint64_t request, size_t bytes) {
    struct debt_entry *entry = find_entry(debt, request);
    if (!entry)
        return;
    debt->bytes = debt->bytes - entry->bytes + bytes;
    entry->bytes = bytes;
}

void debt_pay(struct debt *debt, uint64_t request) {
    struct debt_entry *entry = find_entry(debt, request);
    if (!entry)
        return;
    debt->bytes -= entry->bytes;
    *entry = debt->entries[--debt->count];
}
