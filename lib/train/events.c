#include "train/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/error.h"

int events_write(struct metrics *metrics, const struct checkpoint *checkpoint, const char *event,
                 json_t *fields, struct error *err) {
    json_t *line = json_pack("{s:I, s:f, s:I}", "step", (json_int_t)checkpoint->clock, "epoch",
                             checkpoint->epoch, "samples", (json_int_t)checkpoint->samples);
    if (json_object_update(line, fields)) {
        json_decref(line);
        line = NULL;
    }
    json_decref(fields);
    return metrics_write(metrics, event, line, err);
}

json_t *events_eval(const struct tally *tally, double seconds) {
    return json_pack("{s:f, s:f, s:o, s:I, s:f}", "top1", tally_top1(tally), "top5",
                     tally_top5(tally), "loss", json_number(tally_loss(tally)), "samples_tested",
                     (json_int_t)tally->samples, "seconds", seconds);
}

void events_eval_text(char text[EVENTS_TEXT], double epoch, const struct tally *tally) {
    snprintf(text, EVENTS_TEXT,
             "epoch %.4g: test accuracy %.2f%% (%" PRIu64 " of %" PRIu64 "), loss %.4g", epoch,
             100 * tally_top1(tally), tally->top1, tally->samples, tally_loss(tally));
}

int events_done(const char *folder, const struct checkpoint *checkpoint, double top1,
                struct error *err) {
    json_t *last = json_pack("{s:I, s:f, s:o}", "step", (json_int_t)checkpoint->clock, "epoch",
                             checkpoint->epoch, "top1", top1 < 0 ? json_null() : json_real(top1));
    char *line = last ? json_line(last) : NULL;
    int status = line ? run_folder_done(folder, line, err) : error_nomem(err);
    free(line);
    json_decref(last);
    return status;
}
