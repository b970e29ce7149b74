// A model that predicts cut over several processes of one machine, each of which has one partition
// of it (model/cut.h): so none has all parameters.
//
// Who opens them has partition 0, and the samples. It forks the others, so no other thread may run
// then. They end with the thread that opened them, however it ends.
//
// Threads: passes in different lanes may be at a time, each by one thread.
#ifndef ADAM_TRAIN_PARTITION_PROCESSES_H
#define ADAM_TRAIN_PARTITION_PROCESSES_H

#include "data/supply.h"
#include "model/cut.h"
#include "model/net.h"

struct error;

struct partition_processes;

// The caller keeps what it points to.
struct partition_processes_config {
    const struct model *model;
    const struct kernels *kernels;
    int partitions; // at least 2
    int lanes;      // passes at a time
    int batch;      // samples of a pass at most
    int targets;    // numbers that each has as targets; 0: a label at most
    // Reads the parameters of a partition, in its process.
    int (*read)(void *self, const struct cut *cut, int partition, float *own, struct error *err);
    // Told, by any thread, that this process is waited for since some seconds; may be NULL.
    void (*waits)(void *self, int partition, int process);
    void *self;
};

// Returns when all have read their parameters. What `read` returns; STATUS_IO; STATUS_UNAVAILABLE:
// one was killed. Nothing is left then.
int partition_processes_open(struct partition_processes **out,
                             const struct partition_processes_config *config, struct error *err);
// Ends them.
void partition_processes_close(struct partition_processes *processes);

// A lane that nobody has taken before.
int partition_processes_lane(struct partition_processes *processes);
// One pass of the mini-batch, of at least one sample: batch->n x classes scores, valid until the
// next one in this lane, and the sum of the losses (net_loss). STATUS_UNAVAILABLE: one of the
// processes was killed.
int partition_processes_pass(struct partition_processes *processes, int lane,
                             const struct batch *batch, const float **scores, double *loss,
                             struct error *err);

#endif
