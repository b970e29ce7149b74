// A test program is a main() of TEST blocks; it prints TAP and exits 1 when any
// check failed. A check names what it saw.
#ifndef ADAM_TESTS_TAP_H
#define ADAM_TESTS_TAP_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct tap {
    int tests, failed, failed_here;
};

static inline void tap_result(struct tap *tap, const char *name) {
    printf("%s %d - %s\n", tap->failed_here ? "not ok" : "ok", ++tap->tests, name);
    fflush(stdout);
    tap->failed += tap->failed_here != 0;
    tap->failed_here = 0;
}

static inline int tap_done(const struct tap *tap) {
    printf("1..%d\n", tap->tests);
    return tap->failed != 0;
}

// TEST(&tap, "a shape out of bounds is refused", { ... });
#define TEST(tap, name, ...)                                                                       \
    do {                                                                                           \
        __VA_ARGS__                                                                                \
        tap_result(tap, name);                                                                     \
    } while (0)

#define FAIL(tap, ...)                                                                             \
    do {                                                                                           \
        (tap)->failed_here++;                                                                      \
        printf("# %s:%d: ", __FILE__, __LINE__);                                                   \
        printf(__VA_ARGS__);                                                                       \
        putchar('\n');                                                                             \
    } while (0)

#define CHECK(tap, condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL(tap, "not true: %s", #condition);                                                 \
    } while (0)

#define CHECK_INT(tap, got, wanted)                                                                \
    do {                                                                                           \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                          \
        if (got_ != wanted_)                                                                       \
            FAIL(tap, "%s is %lld, not %lld", #got, got_, wanted_);                                \
    } while (0)

#define CHECK_NEAR(tap, got, wanted, tolerance)                                                    \
    do {                                                                                           \
        double got_ = (got), wanted_ = (wanted);                                                   \
        if (!(fabs(got_ - wanted_) <= (tolerance)))                                                \
            FAIL(tap, "%s is %.9g, not %.9g within %g", #got, got_, wanted_, (double)(tolerance)); \
    } while (0)

#define CHECK_TEXT(tap, got, wanted)                                                               \
    do {                                                                                           \
        const char *got_ = (got), *wanted_ = (wanted);                                             \
        if (strcmp(got_, wanted_) != 0)                                                            \
            FAIL(tap, "%s is '%s', not '%s'", #got, got_, wanted_);                                \
    } while (0)

#endif
