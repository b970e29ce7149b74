#include "train/weights.h"

#include <stdlib.h>

#include "core/error.h"

static void drop_state(struct checkpoint *checkpoint) {
    free(checkpoint->state);
    checkpoint->state = NULL;
}

int weights_rule(struct checkpoint *checkpoint, struct settings *settings, struct error *err) {
    enum rule before = checkpoint->optimizer.rule;
    int status = settings_optimizer(settings, &checkpoint->optimizer, err);
    if (status || checkpoint->optimizer.rule == before)
        return status;
    drop_state(checkpoint);
    settings->state_since = (int64_t)checkpoint->clock;
    return STATUS_OK;
}

int weights_make(struct checkpoint *checkpoint, const struct model *model, struct error *err) {
    bool fresh = !checkpoint->parameters;
    if (!optimizer_states(checkpoint->optimizer.rule))
        drop_state(checkpoint);
    int status = checkpoint_make_room(checkpoint, true, err);
    if (!status && fresh)
        model_init(model, checkpoint->parameters, checkpoint->seed);
    return status;
}
