// Errands to the controller that a subcommand's operand names.
#ifndef ADAM_CTL_ASKING_H
#define ADAM_CTL_ASKING_H

#include "adam-ctl/subcommand.h"
#include "proto/kept.h"

struct error;

// As admin_ask (remote/admin.h), with the keys of the options.
int ask(const struct admin_options *o, const char *place, uint16_t type, const void *message,
        uint16_t wanted, struct kept **answer, struct error *err);
int ask_status(const struct admin_options *o, const char *place, struct kept **answer,
               struct error *err);
// Who has which buckets.
int ask_places(const struct admin_options *o, const char *place, struct kept **answer,
               struct error *err);

#endif
