#include "train/goal.h"

#include "core/error.h"

int goal_check(const struct model *model, const char *path, int targets, struct error *err) {
    const struct layer *output = model_output(model);
    enum goal goal = model_goal(model);
    if (targets == 0 && goal == GOAL_NUMBERS)
        return error_set(err, STATUS_DATA,
                         "%s: samples have no targets, but the last layer of %s (line %d) learns "
                         "numbers: --targets FILE",
                         path, model->name, output->line);
    if (targets > 0 && goal == GOAL_CLASS)
        return error_set(err, STATUS_DATA,
                         "%s: samples have targets, but the last layer of %s (line %d) is softmax, "
                         "which learns one label of each; logistic learns several, and linear "
                         "numbers",
                         path, model->name, output->line);
    if (targets > 0 && targets != model_classes(model))
        return error_set(err, STATUS_DATA,
                         "%s: samples have %d target%s, but the last layer of %s (line %d) has %d "
                         "units",
                         path, targets, targets == 1 ? "" : "s", model->name, output->line,
                         model_classes(model));
    return STATUS_OK;
}
