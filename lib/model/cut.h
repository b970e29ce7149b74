// A model cut over several partitions, each of which has a part of every layer: "We partition our
// models vertically across the model worker machines [...] as this minimizes the amount of
// cross-machine communication that is required for the convolution layers" (Adam 3.2). "Only those
// nodes with edges that cross partition boundaries [...] will need to have their state transmitted
// between machines" (DistBelief 3).
//
//                     partition 0        partition 1
//   rows              o o o o o          o o o o o     strips of rows, and what windows see
//   maps, units       each has some of them and reads all that the layer reads
//   inputs            each adds up its own inputs for all units, and takes sums of its own units
//   none              all of it          nothing
//
// What a partition computes is a model itself, whose layers are smaller than those of the whole one
// and among which there are others by which it exchanges outputs and error gradients with the
// partitions that have what it lacks (model/net.h, net_go). All partitions have these in one order.
#ifndef ADAM_MODEL_CUT_H
#define ADAM_MODEL_CUT_H

#include "model/model.h"

struct error;

enum { CUT_PARTITIONS_MAX = 64 };

struct cut;

// The name of a way in the key of a layer: "rows", and of a flat vector "units" for maps.
const char *cut_way_name(const struct layer *layer, enum cut_way way);

// For `partitions`, from 1 on, and mini-batches of so many samples, by which weights that several
// partitions have are worth their exchange. Per layer the way that its key says, or the one by
// which, all layers together, the fewest bytes go over borders while multiplications stay balanced.
// The model must outlive it. STATUS_IO: out of memory.
int cut_open(struct cut **out, const struct model *model, int partitions, int batch,
             struct error *err);
void cut_close(struct cut *cut);

int cut_partitions(const struct cut *cut);
// The model of a partition; it has no text. Its input is that of the whole model; its last
// layer is an output if it has classes or numbers of the whole model's. The first one is given the
// samples, and sends the others what these need.
const struct model *cut_model(const struct cut *cut, int partition);
// How many exchanges there are: their numbers are below that (struct net_wire).
int cut_exchanges(const struct cut *cut);

// Floats that lie one behind the other among the parameters of the whole model and among those of
// a partition's.
struct cut_run {
    size_t whole, own, count;
};
// Calls `visit` with all of a partition, or with those that it gives, in the order of its own.
typedef void cut_visit(void *self, const struct cut_run *run);
void cut_runs(const struct cut *cut, int partition, cut_visit *visit, void *self);
void cut_given_runs(const struct cut *cut, int partition, cut_visit *visit, void *self);
// Copies parameters to a partition's from the whole model's, or back: of those that several
// partitions have the first one gives them.
void cut_take(const struct cut *cut, int partition, float *own, const float *whole);
void cut_give(const struct cut *cut, int partition, float *whole, const float *own);

// Layers all of whose parameters every partition has that has any of it, so that their gradients
// are to be added up: in one array, of cut_sum_floats() floats, those of this layer at [at, at +
// n).
struct cut_sum {
    size_t at, n;
    int layer; // of the partition's model; -1: it has none of it
};
size_t cut_sum_floats(const struct cut *cut);
// In the order of layers, as many for each partition.
const struct cut_sum *cut_sums(const struct cut *cut, int partition, int *count);

// --- what it costs ----------------------------------------------------------------------

// What a partition has of a layer of the whole model.
struct cut_layer {
    enum cut_way way;
    struct region own;
    size_t parameters;
    uint64_t connections;
    size_t received[2]; // floats of a sample that come from others forward, and back
};
struct cut_layer cut_layer(const struct cut *cut, const struct layer *layer, int partition);
// Floats of a sample that go from one partition to another forward, or back.
size_t cut_sent(const struct cut *cut, bool back, int from, int to);
// Floats of a sample that go from one to another in one exchange.
size_t cut_piece(const struct cut *cut, int exchange, bool back, int from, int to);
// How many times as fast as one partition they are to be, where a byte that comes from another
// takes as long as so many multiplications.
enum { CUT_MULTIPLIES_A_BYTE = 32 };
double cut_speed_up(const struct cut *cut);

#endif
