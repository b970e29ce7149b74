// Deltas of dense layers as factors: threads train without locks, as many samples are
// accumulated as go in one push, and of dense layers their activations and error gradients
// are sent, which the parameter servers multiply. This is how Adam joins the two (3.2.2,
// 3.2.6), where "the communication traffic volume [falls] from M*N to k*(M+N)".
//
// Exact only for plain sgd: there, and without weight decay or clipping, what k samples have
// changed is a sum of k products, each times its learning rate. It is sent where that is
// fewer numbers than the weights.
//
// Two bins: the threads fill one while the other is on its way. A thread that adds a product
// between the moment when the bins change places and the moment when the weights' changes
// are taken has it in one push here and in the next one there, or the other way round.
#ifndef ADAM_REMOTE_DELTA_FACTORS_H
#define ADAM_REMOTE_DELTA_FACTORS_H

#include "remote/home_servers.h"

struct error;

struct delta_factors;

// *out is NULL where no layer can go as factors. STATUS_USAGE: a layer that the user named
// cannot.
int delta_factors_open(struct delta_factors **out, const struct home_servers_config *config,
                       struct error *err);
void delta_factors_close(struct delta_factors *factors);
// The settings of the optimizer and of the protocol may be others.
void delta_factors_change(struct delta_factors *factors);

// Training threads, at any time: the product is kept, if its layer's are; the layer has
// changed by something else than a product that was kept.
void delta_factors_add(struct delta_factors *factors, const struct layer *layer,
                       const struct dense_errors *errors, float rate);
void delta_factors_spoil(struct delta_factors *factors, const struct layer *layer);

// The rest is the exchanging thread's.
//
// The bins change places: what was added since the last time is taken. The next push will be
// of about so many samples. True: some of what was taken goes as factors.
bool delta_factors_take(struct delta_factors *factors, uint64_t samples);
// Whether products are being kept now: more than twice as many as was said find no room.
bool delta_factors_keeps(const struct delta_factors *factors);
// Pushes what was taken, and of `values` what does not go as factors.
void delta_factors_push(struct delta_factors *factors, const struct push *values);
// The exchanges that this takes; `at` counts from 0. NULL: there are no more.
struct exchange *delta_factors_exchange(struct delta_factors *factors, int at);

#endif
