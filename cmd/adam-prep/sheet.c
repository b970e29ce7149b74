// adam-prep sheet.
#include <stdlib.h>
#include <string.h>

#include "adam-prep/session.h"
#include "core/text.h"
#include "prep/sheet.h"
#include "store/output.h"

// "16x16": columns, rows.
static bool parse_grid(const char *text, int *columns, int *rows) {
    const char *x = strchr(text, 'x');
    int64_t c, r;
    if (!x || !text_integer(text, (size_t)(x - text), &c) ||
        !text_integer(x + 1, strlen(x + 1), &r) || c < 1 || r < 1 || c > SHEET_MAX_CELLS ||
        r > SHEET_MAX_CELLS || c * r > SHEET_MAX_CELLS)
        return false;
    *columns = (int)c, *rows = (int)r;
    return true;
}

static int write_png(const struct image *image, const char *path, bool force, struct error *err) {
    void *data;
    size_t size;
    int status = image_encode(&data, &size, image, CODEC_PNG, 0, err);
    if (status)
        return status;
    status = output_whole(path, force, data, size, err);
    free(data);
    return status;
}

int run_sheet(struct session *s, char **operands, int count, struct error *err) {
    const struct options *o = s->options;
    struct sheet_config config = {
        .columns = 16,
        .rows = 16,
        .cell = (int)o->cell,
        .by_class = o->by_class,
        .random = o->random,
        .seed = (uint64_t)o->seed,
        .classes = o->classes ? &s->classes : NULL,
        .context = s,
        .rejected = session_rejected,
        .stopped = stop_requested,
    };
    if (count + (o->files_from != NULL) > 1 &&
        parse_grid(operands[count - 1], &config.columns, &config.rows))
        count--;
    config.inputs = session_inputs(s, (const char *const *)operands, (size_t)count);
    int status = session_check_inputs(&config.inputs, PROGRAM " sheet", err), shown;
    if (!status)
        status = session_need_output(s, "sheet", err);
    if (!status)
        status = talk_refuse_terminal(o->output, err);
    if (status)
        return status;
    struct image sheet = {0};
    status = sheet_draw(&sheet, &config, &shown, err);
    if (!status)
        status = write_png(&sheet, o->output, o->force, err);
    if (!status && !o->quiet)
        talk_note(PROGRAM, "%d pictures, %dx%d pixels", shown, sheet.width, sheet.height);
    image_free(&sheet);
    return status;
}
