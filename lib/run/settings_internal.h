// Shared by settings.c, settings_text.c, settings_meaning.c and settings_check.c.
#ifndef ADAM_RUN_SETTINGS_INTERNAL_H
#define ADAM_RUN_SETTINGS_INTERNAL_H

#include "run/settings.h"

#define HELD_OUT "auto=" // in the place of a test set

// ---- settings.c: the table ----

enum settings_kind { TEXT, COUNT, REAL, FLAG };

// Where a key has a meaning, and whether a run of many processes can change it.
enum settings_use {
    ALONE = 1, // of adam-worker alone
    MANY = 2,  // of many processes alone
    LIVE = 4,  // may change meanwhile
    PATH = 8,  // names a file
    OWN = 16,  // the run's own: nobody chooses it
    SOME = 32, // who chooses it takes 1 at the least; 0 is that nobody has
};

// One row a stored setting, named as the option; counts and reals lie within low..high,
// texts are one of the choices, if there are any.
struct settings_row {
    const char *name;
    enum settings_kind kind;
    size_t offset;
    unsigned use;
    double low, high;
    const char *const *choices;
};

// A setting's value: the member of its row's kind, the others are 0.
struct settings_value {
    const char *text;
    int64_t count;
    double real;
    bool flag;
};

// Row `index` of the table; NULL behind the last.
const struct settings_row *settings_row(size_t index);
// That of a key of a run of many processes; NULL: there is none.
const struct settings_row *settings_find_row(const char *key);
// STATUS_USAGE: there is none; the text names one like it.
int settings_refuse_key(const char *key, struct error *err);
struct settings_value settings_value(const struct settings *settings,
                                     const struct settings_row *row);
// Whether the setting has a value, and that as JSON, a new reference; NULL: memory is out.
bool settings_row_given(const struct settings *settings, const struct settings_row *row);
json_t *settings_row_json(const struct settings *settings, const struct settings_row *row);

bool settings_is_held_out(const char *test, size_t length);

// What forbids factors, as it counts updates; NULL: nothing. Those of each layer, and the rest of
// the push, are messages that servers look at, and apply, one by one. So each would be as stale as
// what others push between them makes it, and one of them could be refused where others were taken,
// whose turn then is never whole.
const char *settings_counts_updates(const struct settings *settings,
                                    const struct optimizer *optimizer,
                                    const struct protocol *protocol);

#endif
