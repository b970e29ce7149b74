#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "model/table.h"
#include "report/curves.h"
#include "report/markup.h"
#include "report/page_review.h"

static const char style[] =
    ":root{color-scheme:light}"
    "body{font:16px/1.5 system-ui,'Liberation Sans','DejaVu Sans',Arial,sans-serif;color:#222;"
    "background:#fff;max-width:1000px;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.7rem;margin:0 0 .2rem;overflow-wrap:anywhere}"
    "h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}"
    "h3{font-size:1rem;margin:1.2rem 0 .4rem}p{margin:.4rem 0}"
    ".quiet{color:#666}.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.2rem 0}"
    ".tile{border:1px solid #ddd;border-radius:6px;padding:.6rem .8rem;min-width:7.4rem;flex:1}"
    ".tile b{display:block;font-size:1.5rem;line-height:1.2}"
    ".tile span{display:block;color:#666;font-size:.85rem}"
    "svg{max-width:100%;height:auto}"
    ".curves{display:flex;flex-wrap:wrap;gap:.5rem}.curves svg{flex:1 1 330px;min-width:0}"
    "table{border-collapse:collapse;font-size:.9rem}"
    "th,td{padding:.2rem .6rem;text-align:right;font-variant-numeric:tabular-nums}"
    "th{font-weight:600;border-bottom:1px solid #ccc}td{border-bottom:1px solid #eee}"
    ".words td,.words th,td.word,th.word{text-align:left}.words td{overflow-wrap:anywhere}"
    "tbody th{border-bottom:1px solid #eee}tfoot td{border-top:1px solid "
    "#ccc;border-bottom:0;font-weight:600}"
    ".wide{overflow-x:auto}"
    ".confusion td.cell{text-align:center;min-width:2.2rem;border:1px solid #fff}"
    ".confusion th.cell{text-align:center}"
    ".shots{display:flex;flex-wrap:wrap;gap:.7rem;margin:.6rem 0}"
    "figure.photo,figure.photo img,figure.photo .none{width:128px}"
    "figure.photo img,figure.photo .none{height:128px;image-rendering:auto}"
    "figure.photo figcaption>*{display:block}figure.photo b{font-weight:400}"
    ".heat{width:100%;max-width:600px;image-rendering:pixelated;border:1px solid #ddd;"
    "display:block;margin:.6rem 0}"
    "figure{margin:0;width:88px;font-size:.8rem;line-height:1.25;overflow-wrap:anywhere}"
    "figure img{width:88px;height:88px;object-fit:contain;background:#f2f2f2;"
    "image-rendering:pixelated;display:block;margin-bottom:.2rem}"
    "figure .none{width:88px;height:88px;background:#f2f2f2;color:#666;display:flex;"
    "align-items:center;justify-content:center;text-align:center;margin-bottom:.2rem}"
    ".miss{color:#b33f00}"
    "pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}"
    "pre{background:#f6f6f6;padding:.7rem .9rem;overflow-x:auto;font-size:.85rem;line-height:1.4;"
    "border-radius:6px}";

// --- figures -----------------------------------------------------------------

static void put_tile(FILE *out, const char *value, const char *what, const char *more) {
    fputs("<div class=\"tile\"><b>", out);
    markup_text(out, value);
    fputs("</b>", out);
    markup_text(out, what);
    if (*more) {
        fputs("<span>", out);
        markup_text(out, more);
        fputs("</span>", out);
    }
    fputs("</div>\n", out);
}

static double json_number_in(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name)); // 0 when there is none
}

// What tests say of a model, by what samples have: labels, several classes, numbers.
static const struct page_goal {
    size_t curve;
    const char *name;
} goals[] = {
    {CURVE_TOP1, "test accuracy"},
    {CURVE_MAP, "mean average precision"},
    {CURVE_R2, "R2 of the test"},
};

static const struct page_goal *goal_of(const struct history *history) {
    size_t i = sizeof goals / sizeof *goals - 1;
    while (i > 0 && history->curves[goals[i].curve].n == 0)
        i--;
    return &goals[i];
}

static void goal_text(char text[MARKUP_NUMBER], const struct page_goal *goal, double value) {
    if (goal->curve == CURVE_R2)
        snprintf(text, MARKUP_NUMBER, "%.3g", value);
    else
        markup_percent(text, value);
}

// What the reviewed checkpoint reaches, else what the last test of the run said.
static void accuracy_tile(FILE *out, const struct page *page) {
    const struct page_goal *goal = goal_of(page->history);
    const struct curve *curve = &page->history->curves[goal->curve];
    char value[MARKUP_NUMBER], best[MARKUP_NUMBER], more[128] = "";
    size_t at = 0;
    double last = page->review ? tally_top1(&page->review->tally) : curve_last(curve);
    if (!isfinite(last)) {
        put_tile(out, "not tested", goal->name, "");
        return;
    }
    goal_text(value, goal, last);
    if (curve->n > 1) {
        goal_text(best, goal, curve_best(curve, &at));
        snprintf(more, sizeof more, "best %s at epoch %.3g", best, curve->epoch[at]);
    }
    put_tile(out, value, goal->name, more);
}

static void loss_tile(FILE *out, const struct page *page) {
    const struct curve *train = &page->history->curves[CURVE_LOSS];
    const struct curve *test = &page->history->curves[CURVE_TEST_LOSS];
    char value[MARKUP_NUMBER], more[128] = "";
    double loss = page->review ? tally_loss(&page->review->tally) : curve_last(test);
    bool tested = isfinite(loss);
    snprintf(value, sizeof value, "%.3g", tested ? loss : curve_last(train));
    if (tested && train->n > 0)
        snprintf(more, sizeof more, "training %.3g", curve_last(train));
    if (tested || train->n > 0)
        put_tile(out, value, tested ? "test loss" : "training loss", more);
}

static void speed_tile(FILE *out, const struct page *page) {
    const struct curve *speed = &page->history->curves[CURVE_SPEED];
    double sum = 0, connections = json_number_in(history_start(page->history), "connections");
    char value[MARKUP_NUMBER], rate[MARKUP_NUMBER], more[128] = "";
    for (size_t i = 0; i < speed->n; i++)
        sum += speed->value[i] / (double)speed->n;
    if (speed->n == 0)
        return;
    markup_count(value, sum);
    markup_large(rate, sum * connections);
    if (connections > 0)
        snprintf(more, sizeof more, "%s connections/s", rate);
    put_tile(out, value, "images/s in training", more);
}

static void put_headline(FILE *out, const struct page *page) {
    const struct history *history = page->history;
    const json_t *start = history_start(history);
    char value[MARKUP_NUMBER], batches[MARKUP_NUMBER], more[128];
    fputs("<div class=\"tiles\">\n", out);
    accuracy_tile(out, page);
    loss_tile(out, page);
    snprintf(value, sizeof value, "%.3g", history->epoch);
    markup_count(batches, history->batches);
    snprintf(more, sizeof more, "%s mini-batches", batches);
    put_tile(out, value, "epochs", more);
    markup_seconds(value, history->seconds);
    size_t sessions = json_array_size(history->starts);
    *more = 0;
    if (sessions > 1)
        snprintf(more, sizeof more, "in %zu sessions", sessions);
    put_tile(out, value, "of training", more);
    speed_tile(out, page);
    double parameters = page->checkpoint ? (double)page->checkpoint->model->parameter_count
                                         : json_number_in(start, "parameters");
    markup_count(value, parameters);
    put_tile(out, value, "parameters", "");
    fputs("</div>\n", out);
}

static void put_date(FILE *out, double seconds) {
    time_t whole = (time_t)seconds;
    struct tm parts;
    char text[32];
    if (isfinite(seconds) && fabs(seconds) < 1e12 && gmtime_r(&whole, &parts) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts))
        fputs(text, out);
}

// When and where it was trained.
static void origin_line(FILE *out, const struct history *history) {
    const char *host = json_string_value(json_object_get(history_start(history), "host"));
    fputs("<p class=\"quiet\">", out);
    fputs("From ", out);
    put_date(out, history->began);
    fputs(" to ", out);
    put_date(out, history->ended);
    fputs(" UTC", out);
    if (host) {
        fputs(" on ", out);
        markup_text(out, host);
    }
    fputs(".</p>\n", out);
}

static void state_line(FILE *out, const struct history *history) {
    fputs("<p class=\"quiet\">", out);
    switch (history->end) {
    case HISTORY_DONE:
        fputs("Finished.", out);
        break;
    case HISTORY_STOPPED:
        fputs("Stopped before its end: ", out);
        markup_text(out, history->reason);
        fputs(".", out);
        break;
    case HISTORY_DIVERGED:
        fputs("<span class=\"miss\">Diverged: the loss was no longer finite.</span>", out);
        break;
    case HISTORY_RUNNING:
        fputs("No end is recorded: still running, or killed.", out);
        break;
    }
    fputs("</p>\n", out);
}

// --- the model ---------------------------------------------------------------

static const char *json_text_in(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void shape_text(char *text, size_t size, const json_t *shape) {
    int c = (int)json_integer_value(json_array_get(shape, 0));
    int h = (int)json_integer_value(json_array_get(shape, 1));
    int w = (int)json_integer_value(json_array_get(shape, 2));
    if (h == 1 && w == 1)
        snprintf(text, size, "%d", c);
    else
        snprintf(text, size, "%dx%dx%d", c, h, w);
}

static void put_layer_row(FILE *out, const json_t *layer) {
    char shape[64], parameters[MARKUP_NUMBER], connections[MARKUP_NUMBER];
    const json_t *from = json_object_get(layer, "from");
    shape_text(shape, sizeof shape, json_object_get(layer, "output"));
    markup_count(parameters, json_number_in(layer, "parameters"));
    markup_count(connections, json_number_in(layer, "connections"));
    fputs("<tr><td class=\"word\">", out);
    markup_text(out, json_text_in(layer, "name"));
    fputs("</td><td class=\"word\">", out);
    markup_text(out, json_text_in(layer, "type"));
    fputs("</td><td class=\"word\">", out);
    for (size_t i = 0; i < json_array_size(from); i++) {
        fputs(i ? ", " : "", out);
        markup_text(out, json_string_value(json_array_get(from, i)));
    }
    fprintf(out, "</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", shape, parameters, connections);
}

static int model_section(FILE *out, const struct page *page, struct error *err) {
    fputs("<h2>Model</h2>\n", out);
    if (!page->checkpoint) {
        fputs("<p class=\"quiet\">Not shown: ", out);
        markup_text(out, page->no_checkpoint);
        fputs("</p>\n", out);
        return STATUS_OK;
    }
    json_t *table = table_json(page->checkpoint->model, 1, 1);
    if (!table)
        return error_nomem(err);
    char parameters[MARKUP_NUMBER], connections[MARKUP_NUMBER];
    const json_t *layers = json_object_get(table, "layers");
    fputs("<div class=\"wide\"><table><thead><tr><th class=\"word\">layer</th>"
          "<th class=\"word\">type</th><th class=\"word\">reads</th><th>output</th>"
          "<th>parameters</th><th>connections</th></tr></thead>\n<tbody>",
          out);
    for (size_t i = 0; i < json_array_size(layers); i++)
        put_layer_row(out, json_array_get(layers, i));
    markup_count(parameters, json_number_in(table, "parameters"));
    markup_count(connections, json_number_in(table, "connections"));
    fprintf(out,
            "</tbody><tfoot><tr><td class=\"word\">total</td><td></td><td></td><td></td>"
            "<td>%s</td><td>%s</td></tr></tfoot></table></div>\n<h3>As written</h3>\n<pre>",
            parameters, connections);
    json_decref(table);
    markup_text(out, page->checkpoint->model->text);
    fputs("</pre>\n", out);
    return STATUS_OK;
}

// --- how it was made ---------------------------------------------------------

// A data set as feed_describe (train/feed.h) has it: its path, and what is known of it.
static void data_cell(FILE *out, const json_t *data) {
    const json_t *samples = json_object_get(data, "samples");
    const char *digest = json_string_value(json_object_get(data, "digest"));
    char count[MARKUP_NUMBER];
    markup_text(out, json_string_value(json_object_get(data, "path")));
    if (json_is_integer(samples)) {
        markup_count(count, json_number_value(samples));
        fprintf(out, ", %s samples", count);
    }
    if (digest) {
        fputs(", digest ", out);
        markup_text(out, digest);
    }
}

// A JSON value as text: strings bare, data sets in words, the rest as JSON.
static int value_cell(FILE *out, const json_t *value, struct error *err) {
    if (json_is_string(value)) {
        markup_text(out, json_string_value(value));
        return STATUS_OK;
    }
    if (json_is_string(json_object_get(value, "path"))) {
        data_cell(out, value);
        return STATUS_OK;
    }
    char *text = json_line(value);
    if (!text)
        return error_nomem(err);
    markup_text(out, text);
    free(text);
    return STATUS_OK;
}

// What every line of metrics has, and the command, which stands above.
static bool is_common_key(const char *name) {
    static const char *const names[] = {"v", "t", "role", "rank", "event", "command"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

// The settings of the last session, as its start event has them.
static int put_settings(FILE *out, const struct history *history, struct error *err) {
    const char *name;
    json_t *value;
    int status = STATUS_OK;
    fputs("<div class=\"wide\"><table class=\"words\"><tbody>\n", out);
    json_object_foreach((json_t *)history_start(history), name, value) {
        if (is_common_key(name) || status != STATUS_OK)
            continue;
        fputs("<tr><th>", out);
        markup_text(out, name);
        fputs("</th><td>", out);
        status = value_cell(out, value, err);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
    return status;
}

static int making_section(FILE *out, const struct page *page, struct error *err) {
    const struct history *history = page->history;
    fputs("<h2>How it was made</h2>\n<pre class=\"wrap\">", out);
    for (size_t i = 0; i < json_array_size(history->starts); i++) {
        const json_t *command = json_object_get(json_array_get(history->starts, i), "command");
        fputs("$ ", out);
        if (value_cell(out, command ? command : json_null(), err) != STATUS_OK)
            return err->status;
        putc('\n', out);
    }
    fputs("</pre>\n", out);
    int status = put_settings(out, history, err);
    fputs("<p class=\"quiet\">This page was written by adam-ctl " ADAM_VERSION ".</p>\n", out);
    return status;
}

// --- the page ----------------------------------------------------------------

static int curves_section(FILE *out, const struct page *page, struct error *err) {
    fputs("<h2>Learning curves</h2>\n", out);
    // Beside each other, and below each other on a narrow screen.
    struct curves_options options = {.x = CURVES_EPOCH, .width = 480};
    fputs("<div class=\"curves\">\n", out);
    int status = curves_write(out, page->history, 1, &options, err);
    options.x = CURVES_TIME;
    if (status == STATUS_OK)
        status = curves_write(out, page->history, 1, &options, err);
    fputs("</div>\n", out);
    return status;
}

static void put_page_head(FILE *out, const struct page *page) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "img-src data:; style-src 'unsafe-inline'\">\n<title>",
          out);
    markup_text(out, page->title);
    fprintf(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<h1>", style);
    markup_text(out, page->title);
    fputs("</h1>\n", out);
    origin_line(out, page->history);
    state_line(out, page->history);
}

int page_write(FILE *out, const struct page *page, struct error *err) {
    put_page_head(out, page);
    put_headline(out, page);
    int status = curves_section(out, page, err);
    if (status == STATUS_OK) {
        status = page_confusion(out, page, err);
        page_pictures(out, page);
    }
    if (status == STATUS_OK)
        status = model_section(out, page, err);
    if (status == STATUS_OK)
        status = making_section(out, page, err);
    fputs("</body>\n</html>\n", out);
    if (status == STATUS_OK && ferror(out))
        return error_errno(err, STATUS_IO, "writing the report");
    return status;
}
