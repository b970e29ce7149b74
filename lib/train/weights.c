#include "train/weights.h"

#include <string.h>

#include "core/error.h"
#include "run/model_ops.h"

int weights_rule(struct checkpoint *checkpoint, struct settings *settings, struct error *err) {
    struct optimizer next;
    int status = settings_optimizer(settings, &next, err);
    if (status)
        return status;
    if (checkpoint_lacks_state(checkpoint) || checkpoint->optimizer.rule != next.rule)
        settings->state_since = (int64_t)checkpoint->clock;
    return checkpoint_turn(checkpoint, &next, err);
}

static int make_first(const struct model *model, struct checkpoint *checkpoint, struct error *err) {
    double deviation;
    int status = model_ops_deviation(&deviation, model, err);
    if (!status)
        model_init(model, checkpoint->parameters, checkpoint->seed, deviation);
    return status;
}

int weights_make(struct checkpoint *checkpoint, const struct model *model, struct error *err) {
    bool fresh = !checkpoint->parameters;
    int status = checkpoint_make_room(checkpoint, true, err);
    if (!status && fresh)
        status = make_first(model, checkpoint, err);
    return status;
}

void weights_begin_average(struct checkpoint *checkpoint) {
    float *average = checkpoint_average(checkpoint);
    size_t n = checkpoint->model->parameter_count;
    if (average)
        memcpy(average, checkpoint->parameters, n * sizeof *average);
}
