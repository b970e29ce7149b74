// adam-worker: trains a model on this machine with all its processors, alone or as one of
// many workers of a run. Its parts are in cmd/adam-worker/.
#include <stdlib.h>
#include <unistd.h>

#include "adam-worker/options.h"
#include "adam-worker/starting.h"
#include "adam-worker/talker.h"
#include "cli/talk.h"
#include "core/error.h"
#include "member/place.h"
#include "role/alone.h"
#include "role/worker/worker.h"
#include "train/feed.h"

// Alone: with the parameters in this process.
static int run_alone(struct options *o, struct talker *talker, const char *command, int argc,
                     char **argv, struct error *err) {
    struct trainer_config config = {.hooks = {talker, talker_wish, talker_show, talker_say},
                                    .data = {talker, talk_stop, talker_say},
                                    .command = command};
    int status = starting_prepare(o, &config, talker, argc, argv, err);
    if (!status && o->settings.spool)
        status = feed_spool(&o->settings, o->force, &config.data, err);
    config.settings = o->settings;
    char name[NETWORK_NAME_MAX];
    if (!status)
        return alone_run(&config, network_name(&o->network, name), err);
    checkpoint_free(&config.checkpoint);
    return status;
}

// As a member of a run: with the parameters on its servers.
static int run_member(struct options *o, struct talker *talker, const char *command,
                      struct error *err) {
    char name[NETWORK_NAME_MAX];
    struct secrets *keys = NULL;
    int status = place_keys(&keys, o->network.keys, err);
    char listen[PROTO_ADDRESS_MAX];
    if (!status && o->listen)
        status = place_address(listen, "worker", *o->listen ? o->listen : NULL, NULL, err);
    const struct worker_options options = {
        .controller = o->network.controller,
        .name = network_name(&o->network, name),
        .command = command,
        .listen = o->listen ? listen : NULL,
        .keys = keys,
        .insecure = o->network.insecure,
        .threads = (int)o->settings.threads,
        .hooks = {talker, talker_wish, talker_show, talker_say},
    };
    if (!status)
        status = worker_run(&options, err);
    secrets_close(keys);
    return status;
}

static int run(struct options *o, int argc, char **argv, struct error *err) {
    int operand;
    enum cli_next next = options_parse(o, argc, argv, &operand, err);
    if (next != CLI_RUN)
        return next == CLI_DONE ? STATUS_OK : STATUS_USAGE;
    int status = options_check(o, argc, operand, argv, err);
    if (status)
        return status;
    struct talker talker;
    talker_start(&talker, o->quiet);
    char *command = words_command(PROGRAM, argc, argv);
    const char *words = command ? command : PROGRAM;
    status = o->network.controller ? run_member(o, &talker, words, err)
                                   : run_alone(o, &talker, words, argc, argv, err);
    progress_clear(&talker.progress);
    free(command);
    return status;
}

int main(int argc, char **argv) {
    struct options options = {0};
    struct error err = {0};
    talk_begin(_exit);
    settings_default(&options.settings);
    network_default(&options.network);
    int status = run(&options, argc, argv, &err);
    free(options.set.items);
    free(options.freeze.items);
    words_free(&options.frozen);
    free(options.folder);
    return talk_end(PROGRAM, status, &err, options.quiet);
}
