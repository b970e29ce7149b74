#include "member/run_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"

// As a C string, for free(); NULL when memory is out.
static char *string_of(const struct proto_text *text) {
    char *copy = mem_zeroed(text->length + (size_t)1, 1);
    if (copy && text->length > 0)
        memcpy(copy, text->at, text->length);
    return copy;
}

int run_settings(struct settings *settings, char **text, const struct proto_run *run,
                 struct error *err) {
    struct settings told;
    char *copy = string_of(&run->settings);
    if (!copy)
        return error_nomem(err);
    settings_default(&told);
    int status = settings_parse(&told, copy, err);
    if (status) {
        free(copy);
        return error_context(err, "settings of the run");
    }
    *settings = told;
    *text = copy;
    return STATUS_OK;
}

int run_model(struct model **model, const char *name, const struct proto_run *run,
              struct error *err) {
    char *copy = string_of(&run->model);
    int status = copy ? model_parse(model, name, copy, NULL, 0, err) : error_nomem(err);
    free(copy);
    return status;
}
