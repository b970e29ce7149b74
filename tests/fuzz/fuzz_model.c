// Model files: whatever the text, a model or a message; and what is accepted
// reads the same again and has a table. The first line, if it starts with '!', is
// an override.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "model/model.h"
#include "model/table.h"

static void check_accepted(const struct model *model) {
    struct model *again;
    struct error err = {0};
    if (model_parse(&again, "again", model->text, NULL, 0, &err) != STATUS_OK ||
        strcmp(again->text, model->text) != 0 || again->parameter_count != model->parameter_count)
        abort();
    model_free(again);
    char *table = table_text(model, 2, 2);
    json_t *json = table_json(model, 2, 2);
    if (!table || !json)
        abort();
    free(table);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    const char *set = NULL, *rest = text;
    char *end = *text == '!' ? strchr(text, '\n') : NULL;
    if (end) {
        *end = 0;
        set = text + 1;
        rest = end + 1;
    }
    struct model *model;
    struct error err = {0};
    int status = model_parse(&model, "fuzz", rest, &set, set != NULL, &err);
    if (status == STATUS_OK)
        check_accepted(model);
    else if (model || !*err.text)
        abort();
    model_free(model);
    free(text);
    return 0;
}
