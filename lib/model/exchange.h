// What partitions send each other of what a layer gives (model/cut.h). Inside lib/model only.
#ifndef ADAM_MODEL_EXCHANGE_H
#define ADAM_MODEL_EXCHANGE_H

#include "model/net.h"

struct pass;

// Forward each partition sends every other what it gives and the other takes; back, error gradients
// of that go the other way, and are added up.
struct exchange {
    int number; // of the exchanges of its cut
    int partitions;
    bool sums;                  // what is given are sums, of which a partition takes those of all
    bool errors;                // some layer at or below learns
    bool blocked;               // values lie in blocks, where the whole model's do
    struct region *give, *take; // of each partition
    int w;                      // columns
};

// What goes from one partition to another in a pass; nothing from one to itself.
struct region exchange_piece(const struct exchange *exchange, enum net_pass pass, int from, int to);

// Of the pass of an exchange layer, which is that of a partition: its own part of what it takes, or
// of the error gradients of what it gives. Then how many floats another gets, and these, valid
// until the next pass in this direction; and how many another sends, to be put in the order of
// partitions.
void exchange_begin(const struct pass *pass, enum net_pass direction);
size_t exchange_sends(const struct pass *pass, enum net_pass direction, int to);
const float *exchange_pack(const struct pass *pass, enum net_pass direction, int to);
size_t exchange_receives(const struct pass *pass, enum net_pass direction, int from);
void exchange_put(const struct pass *pass, enum net_pass direction, const float *floats, int from);

#endif
