// Shared by settings.c, settings_meaning.c and settings_check.c.
#ifndef ADAM_RUN_SETTINGS_INTERNAL_H
#define ADAM_RUN_SETTINGS_INTERNAL_H

#include "run/settings.h"

#define HELD_OUT "auto=" // in the place of a test set

bool settings_is_held_out(const char *test, size_t length);

// What forbids factors, as it counts updates; NULL: nothing. Those of each layer, and the rest of
// the push, are messages that servers look at, and apply, one by one. So each would be as stale as
// what others push between them makes it, and one of them could be refused where others were taken,
// whose turn then is never whole.
const char *settings_counts_updates(const struct settings *settings,
                                    const struct optimizer *optimizer,
                                    const struct protocol *protocol);

#endif
