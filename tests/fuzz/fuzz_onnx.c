// ONNX files: whatever the bytes, a model whose text reads the same again, or a message.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accepted(const struct checkpoint *checkpoint) {
    struct model *again;
    struct error err = {0};
    const struct model *model = checkpoint->model;
    if (model_parse(&again, "again", model->text, NULL, 0, &err) != STATUS_OK ||
        again->parameter_count != model->parameter_count ||
        checkpoint->classes.count != model_classes(model))
        abort();
    model_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct import_wish wish = {.shape = NULL};
    struct checkpoint checkpoint;
    struct error err = {0};
    struct import_guess guess;
    int status = onnx_import_bytes(&checkpoint, "fuzz", data, size, &wish, &guess, &err);
    if (status == STATUS_OK)
        check_accepted(&checkpoint);
    else if (status == STATUS_BUG || !*err.text)
        abort();
    free(guess.ops);
    checkpoint_free(&checkpoint);
    return 0;
}
