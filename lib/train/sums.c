#include "train/sums.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"

// What one partition adds up for all.
struct part {
    size_t first, n;
};

static struct part part_of(const struct sums *sums, int partition) {
    size_t all = (size_t)sums->partitions, p = (size_t)partition;
    size_t first = sums->count * p / all, last = sums->count * (p + 1) / all;
    return (struct part){first, last - first};
}

int sums_open(struct sums *sums, const struct net_wire *wire, int exchange, int partition,
              int partitions, size_t count, const struct kernels *kernels, struct error *err) {
    *sums = (struct sums){.kernels = kernels,
                          .wire = wire,
                          .exchange = exchange,
                          .partition = partition,
                          .partitions = partitions,
                          .count = count,
                          .floats = mem_floats(count + 1),
                          .part = mem_floats(count / (size_t)partitions + 1)};
    return sums->floats && sums->part ? STATUS_OK : error_nomem(err);
}

void sums_close(struct sums *sums) {
    free(sums->floats), free(sums->part);
    *sums = (struct sums){0};
}

void sums_begin(struct sums *sums) {
    sums->step = 0;
}

static bool has_gone(const struct sums *sums, enum net_pass pass, int to) {
    return to == sums->partition || sums->wire->gone(sums->wire->self, sums->exchange, pass, to);
}

bool sums_idle(const struct sums *sums) {
    for (int q = 0; q < sums->partitions; q++)
        if (!has_gone(sums, NET_FORWARD, q) || !has_gone(sums, NET_BACKWARD, q))
            return false;
    return true;
}

// To its summer a part of what is added up, or to everybody its totals.
static bool send_part(const struct sums *sums, enum net_pass pass, int to) {
    const struct part part = part_of(sums, pass == NET_FORWARD ? to : sums->partition);
    const float *from = pass == NET_FORWARD ? sums->floats + part.first : sums->part;
    if (to == sums->partition || part.n == 0)
        return true;
    if (!has_gone(sums, pass, to))
        return false;
    sums->wire->send(sums->wire->self, sums->exchange, pass, to, from, part.n);
    return true;
}

static void add_part(const struct sums *sums, const float *floats, int from) {
    const struct part part = part_of(sums, sums->partition);
    float *to = sums->part;
    if (from == 0)
        memcpy(to, floats, part.n * sizeof *to);
    else
        sums->kernels->axpy(to, floats, part.n, 1);
}

static bool take_addend(const struct sums *sums, int from) {
    const struct part part = part_of(sums, sums->partition);
    const struct net_wire *wire = sums->wire;
    if (from == sums->partition)
        add_part(sums, sums->floats + part.first, from);
    if (from == sums->partition || part.n == 0)
        return true;
    const float *floats = wire->receive(wire->self, sums->exchange, NET_FORWARD, from, part.n);
    if (!floats)
        return false;
    add_part(sums, floats, from);
    wire->read(wire->self, sums->exchange, NET_FORWARD, from);
    return true;
}

static bool take_totals(const struct sums *sums, int from) {
    const struct part part = part_of(sums, from);
    const struct net_wire *wire = sums->wire;
    float *to = sums->floats + part.first;
    if (from == sums->partition)
        memcpy(to, sums->part, part.n * sizeof *to);
    if (from == sums->partition || part.n == 0)
        return true;
    const float *floats = wire->receive(wire->self, sums->exchange, NET_BACKWARD, from, part.n);
    if (!floats)
        return false;
    memcpy(to, floats, part.n * sizeof *to);
    wire->read(wire->self, sums->exchange, NET_BACKWARD, from);
    return true;
}

bool sums_go(struct sums *sums) {
    for (int all = sums->partitions; sums->step < 4 * all; sums->step++) {
        int other = sums->step % all, phase = sums->step / all;
        bool done = phase == 0   ? send_part(sums, NET_FORWARD, other)
                    : phase == 1 ? take_addend(sums, other)
                    : phase == 2 ? send_part(sums, NET_BACKWARD, other)
                                 : take_totals(sums, other);
        if (!done)
            return false;
    }
    return true;
}
