// Operations of a model's input: how far the values deviate that they leave.
#include "../helper/tap.h"
#include "core/error.h"
#include "run/model_ops.h"

static int deviation_of(struct tap *tap, const char *input, double *deviation) {
    char text[200];
    struct error err = {0};
    struct model *model = NULL;
    snprintf(text, sizeof text, "input %s\nsoftmax units=3\n", input);
    if (model_parse(&model, "test.net", text, NULL, 0, &err)) {
        FAIL(tap, "%s", err.text);
        return -1;
    }
    int status = model_ops_deviation(deviation, model, &err);
    model_free(model);
    return status;
}

static void test_deviation(struct tap *tap) {
    static const struct {
        const char *input;
        double deviation;
    } cases[] = {
        {"3x8x6", 63.75}, // bytes
        {"3x8x6 ops='mean 125,123,114'", 63.75},
        {"1x8x6 ops='gray; scale 1/255; mean 0.5; std 0.25'", 1},
        {"40", 1},                                 // no picture
        {"3x1x9", 1},                              // nor this
        {"1x8x6 ops='mean 125,123,114; gray'", 1}, // of three channels, whose range nobody knows
    };
    TEST(tap, "the deviation of inputs is that of bytes behind the operations", {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            double deviation = -1;
            CHECK_INT(tap, deviation_of(tap, cases[i].input, &deviation), STATUS_OK);
            CHECK_NEAR(tap, deviation, cases[i].deviation, 1e-5);
        }
        double deviation;
        CHECK_INT(tap, deviation_of(tap, "3x8x6 ops='crop 4 random'", &deviation), STATUS_DATA);
    });
}

int main(void) {
    struct tap tap = {0};
    test_deviation(&tap);
    return tap_done(&tap);
}
