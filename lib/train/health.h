// Why a run does not learn: what is said to the user, with the likely cause. Called by the thread
// that runs the loop, while the training threads stand still, unless it says otherwise.
#ifndef ADAM_TRAIN_HEALTH_H
#define ADAM_TRAIN_HEALTH_H

#include "train/feed.h"
#include "train/loop.h"

enum { HEALTH_TEXT = 768 };

// The loss since `from` samples; zeroed at first.
struct health {
    struct loop_sums from;
    bool looked; // once, when the first window was over
    bool said;
    double stays; // the loss of the last window, if it was that of guessing; else 0
};

// Takes the sums of a run of so many samples an epoch (0: not known) and classes. True when
// a window of samples is over, and health_explain is to be asked: at the end of the first one, and
// when the loss of a whole window was that of guessing. At any time.
bool health_due(struct health *health, struct loop_sums now, uint64_t epoch, int classes);

// What a run looks like from inside.
struct health_view {
    const struct feed *feed;
    const struct settings *settings;
    const struct model *model;
    const struct kernels *kernels;
    const float *parameters;
    double rate; // of the moment
    int classes; // of the data
};

// Looks at the activity of units in some samples. False: nothing is wrong, or it was said before.
bool health_explain(struct health *health, const struct health_view *view, char text[HEALTH_TEXT]);

// Whether the model has more outputs than the data has classes, as a net for other data does.
bool health_classes(char text[HEALTH_TEXT], const struct model *model, int classes);

// What to do about a loss that is not finite, where the largest input of the mini-batch had this
// absolute value; NAN: it was no finite number.
void health_advise(char text[HEALTH_TEXT], float largest);

#endif
