#include "train/weights.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

static void drop_state(struct checkpoint *checkpoint) {
    free(checkpoint->state);
    checkpoint->state = NULL;
}

int weights_rule(struct checkpoint *checkpoint, const struct settings *settings,
                 struct error *err) {
    enum rule before = checkpoint->optimizer.rule;
    int status = settings_optimizer(settings, &checkpoint->optimizer, err);
    if (!status && checkpoint->optimizer.rule != before)
        drop_state(checkpoint);
    return status;
}

int weights_make(struct checkpoint *checkpoint, const struct model *model, struct error *err) {
    size_t n = model->parameter_count;
    bool needed = optimizer_state_name(checkpoint->optimizer.rule) != NULL;
    if (!needed)
        drop_state(checkpoint);
    else if (!checkpoint->state)
        checkpoint->state = mem_floats(n);
    if (!checkpoint->parameters) {
        checkpoint->parameters = mem_floats(n);
        if (checkpoint->parameters)
            model_init(model, checkpoint->parameters, checkpoint->seed);
    }
    if (!checkpoint->parameters || (needed && !checkpoint->state))
        return error_set(err, STATUS_IO, "out of memory for the %zu parameters of %s", n,
                         model->name);
    return STATUS_OK;
}
