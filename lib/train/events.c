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

json_t *events_figures(const struct tally *tally) {
    double figure = tally_figure(tally);
    switch (tally->figure) {
    case FIGURE_TOP1:
        return json_pack("{s:f, s:f}", "top1", figure, "top5", tally_top5(tally));
    case FIGURE_MAP:
        return json_pack("{s:f}", "map", figure);
    case FIGURE_R2:
        return json_pack("{s:o, s:o}", "r2", json_number(figure), "mae",
                         json_number(tally_mean_error(tally)));
    }
    return NULL;
}

json_t *events_eval(const struct tally *tally, double seconds) {
    json_t *fields = events_figures(tally);
    json_put(&fields, "loss", json_number(tally_loss(tally)));
    json_put(&fields, "samples_tested", json_integer((json_int_t)tally->samples));
    json_put(&fields, "seconds", json_real(seconds));
    return fields;
}

void events_eval_text(char text[EVENTS_TEXT], double epoch, const struct tally *tally) {
    int n = snprintf(text, EVENTS_TEXT, "epoch %.4g: ", epoch);
    char *rest = text + n;
    size_t room = EVENTS_TEXT - (size_t)n;
    if (tally->figure == FIGURE_TOP1)
        snprintf(rest, room, "test accuracy %.2f%% (%" PRIu64 " of %" PRIu64 "), loss %.4g",
                 100 * tally_top1(tally), tally->top1, tally->samples, tally_loss(tally));
    else if (tally->figure == FIGURE_MAP)
        snprintf(rest, room, "mean average precision %.2f%% (%" PRIu64 " samples), loss %.4g",
                 100 * tally_figure(tally), tally->samples, tally_loss(tally));
    else
        snprintf(rest, room, "mean error %.4g, R2 %.4g (%" PRIu64 " samples), loss %.4g",
                 tally_mean_error(tally), tally_figure(tally), tally->samples, tally_loss(tally));
}

struct best events_result(const struct tally *tally, const struct checkpoint *checkpoint) {
    return (struct best){
        .known = true,
        .figure = tally->figure,
        .value = tally_figure(tally),
        .loss = tally_loss(tally),
        .clock = checkpoint->clock,
        .epoch = checkpoint->epoch,
    };
}

json_t *events_last(const struct best *last) {
    return json_pack("{s:o}", figure_names[last->figure],
                     last->known ? json_number(last->value) : json_null());
}

int events_done(const char *folder, const struct checkpoint *checkpoint, const struct best *result,
                struct error *err) {
    json_t *last =
        json_pack("{s:I, s:f}", "step", (json_int_t)checkpoint->clock, "epoch", checkpoint->epoch);
    json_t *figure = events_last(result);
    if (!figure || json_object_update(last, figure)) {
        json_decref(last);
        last = NULL;
    }
    json_decref(figure);
    char *line = last ? json_line(last) : NULL;
    int status = line ? run_folder_done(folder, line, err) : error_nomem(err);
    free(line);
    json_decref(last);
    return status;
}
