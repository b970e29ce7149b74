// Learning-rate schedules.
//
// The rate is a function of progress in epochs (real: 2.5 is half through the
// third), so that a resumed run and another mini-batch see the same curve.
#ifndef ADAM_RUN_SCHEDULE_H
#define ADAM_RUN_SCHEDULE_H

struct error;

enum schedule_kind { SCHEDULE_CONSTANT, SCHEDULE_STEP, SCHEDULE_EXPONENTIAL, SCHEDULE_COSINE };

#define SCHEDULE_STEPS_MAX 16

struct schedule {
    enum schedule_kind kind;
    double rate;                   // before any decay
    double warmup;                 // epochs of linear growth from 0, whatever the kind
    double total;                  // epochs, for cosine
    double final;                  // what cosine ends at
    double factor;                 // step and exponential
    double every;                  // step: each so many epochs ...
    double at[SCHEDULE_STEPS_MAX]; // ... or, when it is 0, at these
    int at_count;
};

// Sets the kind and its numbers; rate, warmup and total are the caller's.
//   constant
//   step:0.1@120,130   times 0.1 at epochs 120 and 130
//   step:0.5/10        times 0.5 every 10 epochs
//   exp:0.95           times 0.95 each epoch, smoothly
//   cosine             half a cosine from the rate to 0 at the last epoch
//   cosine:0.001       the same, ending at 0.001
// STATUS_USAGE.
int schedule_parse(struct schedule *schedule, const char *text, struct error *err);
double schedule_rate(const struct schedule *schedule, double epoch);

#endif
