// What a prediction service counts, as Prometheus reads it. Any thread may call.
#ifndef ADAM_ANSWER_FIGURES_H
#define ADAM_ANSWER_FIGURES_H

#include <pthread.h>
#include <stdint.h>

#define FIGURES_CODES 16
#define FIGURES_BUCKETS 16

struct figures {
    pthread_mutex_t lock; // of all below
    struct {
        int code; // of HTTP; 0: the caller went away
        uint64_t count;
    } requests[FIGURES_CODES];          // in the order of their coming
    uint64_t samples;                   // with scores
    uint64_t took[FIGURES_BUCKETS + 1]; // predictions by their time; the last: longer than all
    double seconds;                     // of all of them
};

// Nothing is counted yet.
void figures_open(struct figures *figures);
void figures_close(struct figures *figures);

void figures_request(struct figures *figures, int code);
// A request with so many samples was answered, so long after the whole of it was there.
void figures_predicted(struct figures *figures, int samples, double seconds);

// To be freed with free(); NULL when out of memory.
char *figures_text(struct figures *figures, uint64_t passes, int connections);

#endif
