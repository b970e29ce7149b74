#include "train/model_ops.h"

int model_ops_open(struct ops **out, const struct model *model, struct error *err) {
    const struct layer *input = model_input(model);
    size_t offset, length;
    *out = NULL;
    int status = ops_parse(out, input->ops, OPS_DETERMINISTIC, &offset, &length, err);
    return status == STATUS_USAGE ? model_blame(model, input, "ops", offset, length, err) : status;
}
