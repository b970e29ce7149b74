// Threads that share one piece of work, and are done when it is.
#ifndef ADAM_CORE_CREW_H
#define ADAM_CORE_CREW_H

struct error;

// Calls work(self) in so many threads at once, and waits for all of them. Fewer threads do
// where the system has no more; STATUS_IO: not one could be started, and nothing was done.
int crew_work(int threads, void *(*work)(void *), void *self, struct error *err);

#endif
