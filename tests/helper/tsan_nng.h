// For tests that use links, once in each program: what ThreadSanitizer cannot know.
#ifndef ADAM_TESTS_TSAN_NNG_H
#define ADAM_TESTS_TSAN_NNG_H

#ifdef __SANITIZE_THREAD__
// Debian's libnng is not instrumented: the counters by which it knows that nobody uses a
// mutex any more are not seen.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race_top:pthread_mutex_destroy";
}
#endif

#endif
