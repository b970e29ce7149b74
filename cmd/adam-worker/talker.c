#include "adam-worker/talker.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "adam-worker/options.h"
#include "cli/talk.h"

// Written by the handler alone; see cli/talk.c.
static atomic_int saves_wanted;

static void save_handler(int number) {
    (void)number;
    saves_wanted++;
}

static void prepare_signals(void) {
    struct sigaction action = {.sa_handler = save_handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    stop_on_signals(true);
}

void talker_start(struct talker *talker, bool quiet) {
    *talker = (struct talker){.saves_seen = 0};
    progress_start(&talker->progress, quiet);
    prepare_signals();
}

enum trainer_wish talker_wish(void *self) {
    struct talker *talker = self;
    int wanted = saves_wanted;
    if (stop_requested())
        return TRAINER_STOP;
    if (wanted == talker->saves_seen)
        return TRAINER_GO_ON;
    talker->saves_seen = wanted;
    return TRAINER_SAVE;
}

// How far the run is: "epoch 1.25 of 10", or of a stream "48000 images".
static void show_place(char text[64], const struct trainer_progress *now) {
    if (now->epochs > 0)
        snprintf(text, 64, "epoch %.2f of %g", now->epoch, now->epochs);
    else
        snprintf(text, 64, "%llu images", (unsigned long long)now->samples);
}

static void show_partition(struct talker *talker, const struct trainer_progress *now) {
    progress_line(
        &talker->progress, "partition %d of its model  %llu images  %.0f images/s  wait %.0f%%",
        now->partition, (unsigned long long)now->samples, now->samples_per_s, 100 * now->waiting);
}

void talker_show(void *self, const struct trainer_progress *now) {
    struct talker *talker = self;
    char left[32], place[64];
    if (!progress_due(&talker->progress))
        return;
    if (now->partition > 0) {
        show_partition(talker, now);
        return;
    }
    show_place(place, now);
    progress_left(left, now->doing, now->seconds_left);
    progress_line(&talker->progress, "%s  loss %.4f  rate %.3g  %.0f images/s  wait %.0f%%  %s",
                  place, now->loss, now->rate, now->samples_per_s, 100 * now->waiting, left);
}

void talker_say(void *self, const char *text) {
    struct talker *talker = self;
    progress_say(&talker->progress, PROGRAM, text);
}
