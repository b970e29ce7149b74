// When to say whom one waits for: "A wait says whom it waits for: after 10 s", then each
// time that the wait has become twice as long.
#ifndef ADAM_MEMBER_PATIENCE_H
#define ADAM_MEMBER_PATIENCE_H

#include <stdbool.h>

// {0}: waits for nothing. Belongs to the thread that waits.
struct patience {
    double since; // clock_seconds; 0: does not wait
    double told;  // seconds of waiting when it was said last; 0: never
};

// Still waiting; true when it is time to say so.
bool patience_lost(struct patience *patience);
// The wait is over; true when it had been said, so that its end should be, too.
bool patience_found(struct patience *patience);

#endif
