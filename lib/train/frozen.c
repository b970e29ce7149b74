#include "train/frozen.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "kernels/blocks.h"
#include "kernels/kernels.h"
#include "model/border.h"
#include "model/net.h"

// Whose outputs of a sample: nobody's yet, in a thread's hands, there for all.
enum { MISSING, WRITTEN, KEPT };

struct frozen {
    struct frozen_config config;
    struct border border;
    size_t in, out;        // floats of a sample
    uint32_t room;         // samples below this one are kept
    float *kept;           // room x out
    _Atomic uint8_t *have; // of each of them, one of the above
    _Atomic uint64_t passed;
};

// --- the whole --------------------------------------------------------------------------

static int make_room(struct frozen *frozen, struct error *err) {
    uint64_t fit = frozen->config.memory / (frozen->out * sizeof(float));
    frozen->room = fit < frozen->config.samples ? (uint32_t)fit : frozen->config.samples;
    frozen->kept = mem_untouched_floats((size_t)frozen->room * frozen->out);
    frozen->have = mem_zeroed((size_t)frozen->room + 1, sizeof *frozen->have);
    return frozen->kept && frozen->have ? STATUS_OK : error_nomem(err);
}

int frozen_open(struct frozen **out, const struct frozen_config *config, struct error *err) {
    bool found;
    struct frozen *frozen = mem_zeroed(1, sizeof *frozen);
    *out = NULL;
    if (!frozen)
        return error_nomem(err);
    frozen->config = *config;
    int status = border_find(&frozen->border, &found, config->model, err);
    if (!status && found) {
        frozen->in = shape_size(model_input(config->model)->out);
        frozen->out = shape_size(frozen->border.layer->out);
        status = make_room(frozen, err);
    }
    if (status || !found)
        frozen_close(frozen);
    else
        *out = frozen;
    return status;
}

void frozen_close(struct frozen *frozen) {
    if (!frozen)
        return;
    border_free(&frozen->border);
    free(frozen->kept);
    free(frozen->have);
    free(frozen);
}

const struct model *frozen_above(const struct frozen *frozen) {
    return &frozen->border.above;
}

bool frozen_knows(const struct frozen *frozen, uint32_t index) {
    return index < frozen->room && atomic_load(&frozen->have[index]) == KEPT;
}

uint64_t frozen_passed(const struct frozen *frozen) {
    return atomic_load(&frozen->passed);
}

void frozen_text(char text[FROZEN_TEXT], const struct frozen *frozen, const char *changes) {
    const char *layer = frozen->border.layer->name;
    uint32_t samples = frozen->config.samples, room = frozen->room;
    double mebi = (double)room * (double)frozen->out * sizeof(float) / (1 << 20);
    if (changes)
        snprintf(text, FROZEN_TEXT,
                 "all layers up to '%.100s' are frozen, and passed in each epoch: %s changes their "
                 "inputs",
                 layer, changes);
    else if (room < samples)
        snprintf(text, FROZEN_TEXT,
                 "all layers up to '%.100s' are frozen: what they give is kept of %u of %u samples "
                 "(%.1f MiB, --frozen-memory)",
                 layer, (unsigned)room, (unsigned)samples, mebi);
    else
        snprintf(
            text, FROZEN_TEXT,
            "all layers up to '%.100s' are frozen: each sample passes them once, and what they "
            "give is kept (%.1f MiB)",
            layer, mebi);
}

// --- a thread ---------------------------------------------------------------------------

// As many as fill the vectors.
static int pass_of(int most) {
    return most < KERNELS_LANES_MOST ? most : KERNELS_LANES_MOST;
}

int frozen_thread_open(struct frozen_thread *thread, struct frozen *frozen, int most,
                       struct error *err) {
    size_t pass = (size_t)pass_of(most);
    *thread = (struct frozen_thread){
        .frozen = frozen,
        .pass = (int)pass,
        .input = mem_floats(pass * frozen->in),
        .passed = mem_floats(pass * frozen->out),
        .outputs = mem_floats((size_t)most * frozen->out),
        .missing = mem_array((size_t)most, sizeof *thread->missing),
    };
    if (!thread->input || !thread->passed || !thread->outputs || !thread->missing)
        return error_nomem(err);
    return net_open(&thread->net, &frozen->border.below, frozen->config.kernels, (int)pass,
                    NET_PREDICT, err);
}

void frozen_thread_close(struct frozen_thread *thread) {
    net_close(thread->net);
    free(thread->input);
    free(thread->passed);
    free(thread->outputs);
    free(thread->missing);
    *thread = (struct frozen_thread){.net = NULL};
}

// Two threads may have the same sample, of two epochs: one keeps it.
static void keep(struct frozen *frozen, uint32_t index, const float *outputs) {
    uint8_t missing = MISSING;
    if (index >= frozen->room ||
        !atomic_compare_exchange_strong(&frozen->have[index], &missing, WRITTEN))
        return;
    memcpy(frozen->kept + (size_t)index * frozen->out, outputs, frozen->out * sizeof *outputs);
    atomic_store(&frozen->have[index], KEPT);
}

// Passes `count` of the missing samples, from number `from` on. Others fill the pass.
static void pass_missing(struct frozen_thread *thread, const float *weights,
                         const struct batch *batch, int first, int from, int count) {
    struct frozen *frozen = thread->frozen;
    for (int i = 0; i < count; i++)
        memcpy(thread->input + (size_t)i * frozen->in,
               batch->input + (size_t)(first + thread->missing[from + i]) * frozen->in,
               frozen->in * sizeof(float));
    net_forward(thread->net, weights, thread->input, thread->pass, NULL, 0);
    net_last_outputs(thread->net, thread->passed);
    for (int i = 0; i < count; i++) {
        const float *passed = thread->passed + (size_t)i * frozen->out;
        int at = thread->missing[from + i];
        memcpy(thread->outputs + (size_t)at * frozen->out, passed, frozen->out * sizeof *passed);
        keep(frozen, batch->index[first + at], passed);
    }
    atomic_fetch_add(&frozen->passed, (uint64_t)count);
}

float *frozen_outputs(struct frozen_thread *thread, const float *weights, const struct batch *batch,
                      int first, int n) {
    struct frozen *frozen = thread->frozen;
    int count = 0;
    for (int i = 0; i < n; i++) {
        uint32_t index = batch->index[first + i];
        if (frozen_knows(frozen, index))
            memcpy(thread->outputs + (size_t)i * frozen->out,
                   frozen->kept + (size_t)index * frozen->out, frozen->out * sizeof(float));
        else
            thread->missing[count++] = i;
    }
    for (int from = 0; from < count; from += thread->pass)
        pass_missing(thread, weights, batch, first, from,
                     count - from < thread->pass ? count - from : thread->pass);
    return thread->outputs;
}
