// adam-ctl up where the parameter servers have stores: what the run goes on from, and what becomes
// of stores that it does not need any more.
#ifndef ADAM_CTL_REVIVING_H
#define ADAM_CTL_REVIVING_H

#include "launch/launch.h"
#include "revive/revive.h"

struct error;

// Of a run that is to be resumed: says what it goes on from, and sets launch->revive. Without
// stores it only warns where the run had some. Statuses as revive_look.
int reviving_look(struct launch *launch, struct revival *revival, struct error *err);

// Where a new run begins: stores of an earlier one in the folder are set aside. Statuses as
// revive_set_aside.
int reviving_make_way(const struct launch *launch, struct error *err);

// Writes what the run goes on from to its metrics, before anybody else does.
int reviving_report(const struct launch *launch, const struct revival *revival, struct error *err);

#endif
