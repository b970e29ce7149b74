// Changing settings while a run goes on: what may change, of a run of many processes and of one
// that trains alone.
#ifndef ADAM_RUN_LIVE_H
#define ADAM_RUN_LIVE_H

#include "run/settings.h"

struct error;

// Whether each key of the lines KEY=VALUE may change while a run goes on; `alone`: a run of one
// process. Keys that do not exist pass, for settings_parse to name. STATUS_USAGE.
int live_check_keys(const char *lines, bool alone, struct error *err);
// The update rule may follow from other settings (momentum), so that these may not change it.
// STATUS_USAGE.
int live_check_rule(const struct settings *before, const struct settings *next, struct error *err);
// Who pushes factors of layers goes on with that (settings_factors). STATUS_USAGE.
int live_check_factors(const struct settings *before, const struct settings *next,
                       struct error *err);
// Patience counts tests. STATUS_USAGE.
int live_check_patience(const struct settings *next, struct error *err);
// Makes one line of such lines, in their place, for a message.
void live_one_line(char *lines);

#endif
