// What a member reads of its run: the controller tells it as texts, in the message `run`.
//
// Threads: plain functions.
#ifndef ADAM_MEMBER_RUN_TEXT_H
#define ADAM_MEMBER_RUN_TEXT_H

#include "model/model.h"
#include "proto/proto.h"
#include "run/settings.h"

struct error;

// The defaults, and over them what the run's settings say. The settings' texts lie in
// *text, which is the caller's, for free(). On failure both are as they were.
// STATUS_USAGE: a line is none of this version.
int run_settings(struct settings *settings, char **text, const struct proto_run *run,
                 struct error *err);

// The run's model, for model_free; `name` stands for its file in what is said of it. As
// model_parse.
int run_model(struct model **model, const char *name, const struct proto_run *run,
              struct error *err);

#endif
