// Time. Intervals come from a clock that never jumps; wall time is for display.
#ifndef ADAM_CORE_CLOCK_H
#define ADAM_CORE_CLOCK_H

// Seconds since some moment before this process started; monotonic.
double clock_seconds(void);
// Seconds that a processor has worked for the calling thread. Reading it is a
// system call: some 0.3 microseconds.
double clock_busy(void);
// Seconds since 1970.
double clock_wall(void);

#endif
