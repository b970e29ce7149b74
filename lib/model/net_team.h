// Several threads that pass the same few samples forward, each its part of every layer: some rows
// of its outputs, or some of their maps or units. So the scores of one picture are there sooner;
// who has many is served better by a net for each thread.
//
// The caller's thread leads; its mates, which are started here, sleep between passes. In a pass all
// wait for each other behind every layer; between two waits each writes its own part of the
// outputs, and nobody reads these. A mate has a net of its own, which the leader prepares, over the
// buffers of the leader's.
#ifndef ADAM_MODEL_NET_TEAM_H
#define ADAM_MODEL_NET_TEAM_H

#include "model/net.h"

struct net_team;

// For passes through `net`, of NET_PREDICT or NET_FOLDED, which belongs to the caller's thread and
// must outlive the team. Starts one thread less than `threads`, which are two at least. STATUS_IO.
int net_team_open(struct net_team **out, struct net *net, int threads, struct error *err);
void net_team_close(struct net_team *team);

// As net_forward; the caller's thread is one of the team. More samples than one block holds go
// through the net in this thread alone.
void net_team_forward(struct net_team *team, const float *parameters, const float *input, int n);

#endif
