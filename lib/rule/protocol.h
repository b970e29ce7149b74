// How the updates of many workers become one model's: the part of a run's settings that
// parameter servers obey, and the words for it (adam-consistency(7), adam-run(5)).
#ifndef ADAM_RULE_PROTOCOL_H
#define ADAM_RULE_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum protocol_kind {
    PROTOCOL_ASYNC,    // every push is applied as it comes (Adam 3.2.6, Downpour, Rudra eq. 4)
    PROTOCOL_HARDSYNC, // one push of every worker makes an update (Rudra eq. 3)
    PROTOCOL_SOFTSYNC, // floor(lambda / n) pushes, whosever, make an update (Rudra eq. 5)
};

// What becomes of a gradient's learning rate because of staleness.
enum protocol_modulate {
    MODULATE_MEAN, // softsync: "alpha = alpha_0 / <sigma> = alpha_0 / n" (Rudra eq. 6)
    MODULATE_EACH, // alpha_0 / (1 + sigma), sigma being the push's own staleness: "a
                   // finer-grained learning rate modulation strategy that depends on the
                   // staleness of each of gradients" (Rudra, footnote 3)
    MODULATE_NONE,
};

// What workers send under async; under the others always gradients.
enum protocol_push { PUSH_DELTA, PUSH_GRADIENT };

extern const char *const protocol_modulate_names[]; // "mean", "each", "none", NULL
extern const char *const protocol_push_names[];     // "delta", "gradient", NULL

struct protocol { // {0} is async, as by default
    enum protocol_kind kind;
    uint32_t n; // of softsync, at least 1
    enum protocol_modulate modulate;
    // B of the rate x sqrt(lambda mu / B); 0: the rate as given, or by protocol_measures.
    uint64_t reference_batch;
    uint64_t max_staleness; // of a push; 0: any
};

#define PROTOCOL_TEXT 32

// Reads "async", "hardsync" or "softsync:N" into kind and n, and leaves the rest.
// STATUS_USAGE: it is none of them.
int protocol_parse(struct protocol *protocol, const char *text, struct error *err);
// And writes it.
void protocol_name(const struct protocol *protocol, char text[PROTOCOL_TEXT]);

// The complete turns after which a shard updates, when so many workers are working
// (lambda): all of them under hardsync, "c = floor(lambda / n)" under softsync, at least 1.
uint32_t protocol_turns(const struct protocol *protocol, uint32_t workers);

// What the learning rate of a gradient of this staleness is multiplied by.
double protocol_factor(const struct protocol *protocol, uint64_t staleness);

// async: what the rate of a push is multiplied by, when so many workers push for mini-batches of
// `batch` samples: sqrt(batch / (B workers)), so that the workers' pushes together move the
// weights as far as hardsync's one update of their mean. Each push was computed on weights that
// lack the pushes that came meanwhile, which all of it at the full rate would repeat. Otherwise 1.
double protocol_push_factor(const struct protocol *protocol, uint64_t batch, size_t workers);

// async with deltas: whether each worker measures how long its steps may be (remote/delta_steps.h),
// as it does by default.
bool protocol_measures(const struct protocol *protocol);

// Arrays as long as the model's weights that a worker keeps (remote/home_servers.h), beside what
// its optimizer keeps and the gradients of its threads. Of deltas: the weights in use, those of the
// servers as far as they are known, and what is on its way. Of gradients: the weights, and the
// gradient that is made; the one on its way, unless the worker waits for it (hardsync); and with
// `overlap` the weights that come meanwhile.
int protocol_copies(const struct protocol *protocol, enum protocol_push push, bool overlap);

// What the rate of an update that was made of so many samples is multiplied by: "In hardsync
// protocol, the learning rate is multiplied by a factor sqrt(lambda mu / B), where B is the
// batch size of the reference model" (Rudra 3.2). Under softsync n such updates have the
// samples of all workers, and the factor is that of all: without it, what is learned in an
// epoch falls with the number of workers, as under hardsync. Otherwise 1.
double protocol_update_factor(const struct protocol *protocol, uint64_t samples);

#endif
