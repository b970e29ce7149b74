// The test that a user runs on kernels: it passes here, and finds what is wrong.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "measure/selftest.h"

static void test_machine(struct tap *tap) {
    TEST(tap, "the kernels of this machine agree with the reference", {
        const struct kernels *families[SELFTEST_FAMILIES];
        struct selftest test;
        struct error err = {0};
        int count = selftest_families(families);
        CHECK(tap, count >= 1 && families[count - 1] == kernels_best());
        CHECK_INT(tap, selftest_run(&test, families, count, &err), STATUS_OK);
        CHECK(tap, test.good);
        for (int i = 0; i < SELFTEST_LAYERS; i++)
            for (int f = 0; f < count; f++)
                if (!(test.layers[i].differences[f] <= SELFTEST_TOLERANCE))
                    FAIL(tap, "%s: %g", test.layers[i].line, test.layers[i].differences[f]);
        char *text = selftest_text(&test);
        CHECK(tap, text && strstr(text, ": nowhere above 1e-04\n"));
        free(text);
    });
}

// A processor whose exponential is off by a thousandth.
static void wrong_sigmoid(float *y, size_t n, float slope) {
    kernels_of(CPU_REF)->acts[ACT_SIGMOID].forward(y, n, slope);
    for (size_t i = 0; i < n; i++)
        y[i] *= 1.001f;
}

// One that forgets, now and then, to write a value.
static void wrong_sum(float *gradient, const float *dy, int n, int m, int pixels) {
    float first = NAN;
    kernels_of(CPU_REF)->bias_sum(gradient, dy, n, m, pixels);
    if (m == 37)
        gradient[0] = first;
}

static void test_faults(struct tap *tap) {
    TEST(tap, "wrong values and lost ones are found in the layers that use them", {
        struct kernels wrong = *kernels_of(CPU_REF);
        const struct kernels *families[] = {&wrong};
        struct selftest test;
        struct error err = {0};
        wrong.name = "wrong";
        wrong.acts[ACT_SIGMOID].forward = wrong_sigmoid;
        wrong.bias_sum = wrong_sum;
        CHECK_INT(tap, selftest_run(&test, families, 1, &err), STATUS_OK);
        CHECK(tap, !test.good);
        for (int i = 0; i < SELFTEST_LAYERS; i++) {
            bool uses = strstr(test.layers[i].line, "sigmoid") != NULL;
            CHECK(tap, (test.layers[i].differences[0] > SELFTEST_TOLERANCE) == uses);
            CHECK(tap, (test.layers[i].differences[0] > 1e9) ==
                           (strstr(test.layers[i].line, "units=37") != NULL));
        }
        char *text = selftest_text(&test);
        CHECK(tap, text && strstr(text, ": NOT everywhere within 1e-04\n"));
        free(text);
    });
}

int main(void) {
    struct tap tap = {0};
    test_machine(&tap);
    test_faults(&tap);
    return tap_done(&tap);
}
