// What adam-ctl time measures and how it shows it. No check depends on speed.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "kernels/kernels.h"
#include "measure/timing.h"
#include "model/model.h"

static const char text[] = "input 1x4x4\nconv c maps=2 kernel=3 pad=1\nmaxpool p size=2\n"
                           "softmax s units=3\n";

// Each part of each layer of it takes far longer than reading a clock.
static const char timed[] = "input 16x32x32\nconv c maps=64 kernel=3 pad=1\nmaxpool p size=2\n"
                            "softmax s units=3\n";

static struct model *parse(struct tap *tap, const char *net) {
    struct model *model = NULL;
    struct error err = {0};
    if (model_parse(&model, "test.net", net, NULL, 0, &err))
        FAIL(tap, "%s", err.text);
    return model;
}

static void test_run(struct tap *tap) {
    TEST(tap, "every layer is timed in every part that it has", {
        struct model *model = parse(tap, timed);
        struct timing t;
        struct error err = {0};
        CHECK_INT(tap, timing_run(&t, model, kernels_best(), 3, NET_TRAIN, 0, &err), STATUS_OK);
        CHECK(tap, t.passes >= 5 && t.limits.flops > 0 && t.limits.bytes > 0);
        for (int i = 1; i < 4; i++) {
            CHECK(tap, t.layers[i].seconds[TIMING_FORWARD] > 0);
            CHECK(tap, t.layers[i].seconds[TIMING_BACKWARD] > 0);
        }
        CHECK(tap, t.layers[1].seconds[TIMING_UPDATE] > 0);
        CHECK(tap, t.layers[2].seconds[TIMING_UPDATE] <= 0);
        // 94 x 94 taps exist; nobody wants errors of the input.
        CHECK_NEAR(tap, t.layers[1].flops[TIMING_FORWARD], 2. * 3 * 16 * 64 * 94 * 94, 0);
        CHECK_NEAR(tap, t.layers[1].flops[TIMING_BACKWARD], 2. * 3 * 16 * 64 * 94 * 94, 0);
        CHECK_NEAR(tap, t.layers[3].flops[TIMING_BACKWARD], 2. * 2 * 3 * 49152, 0);
        CHECK_NEAR(tap, t.layers[1].bytes, 9216 * 4 * 2, 0);
        CHECK_NEAR(tap, t.layers[3].bytes, 49152 * 4 * 3, 0);
        CHECK(tap, t.layers[1].ways[CONV_FORWARD] && t.layers[1].ways[CONV_BACK_WEIGHTS]);
        CHECK(tap, !t.layers[1].ways[CONV_BACK_INPUT] && !t.layers[2].ways[CONV_FORWARD]);
        timing_free(&t);
        model_free(model);
    });
    TEST(tap, "a prediction has no backward pass", {
        struct model *model = parse(tap, timed);
        struct timing t;
        struct error err = {0};
        CHECK_INT(tap, timing_run(&t, model, kernels_best(), 2, NET_PREDICT, 0, &err), STATUS_OK);
        CHECK_NEAR(tap, t.layers[1].seconds[TIMING_BACKWARD], 0, 0);
        CHECK_NEAR(tap, t.layers[3].flops[TIMING_BACKWARD], 0, 0);
        CHECK_NEAR(tap, t.layers[3].bytes, 49152 * 4, 0);
        CHECK(tap, !t.layers[1].ways[CONV_BACK_WEIGHTS]);
        timing_free(&t);
        model_free(model);
    });
}

// A timing with round figures.
static struct timing invented(const struct model *model, const struct kernels *kernels,
                              struct layer_timing layers[4]) {
    layers[0] = (struct layer_timing){0};
    layers[1] = (struct layer_timing){.seconds = {1e-3, 2e-3, 1e-3},
                                      .flops = {1e8, 1e8},
                                      .bytes = 144,
                                      .lanes = 4,
                                      .ways = {"direct", NULL, "columns"}};
    layers[2] = (struct layer_timing){.seconds = {5e-4, 5e-4, 0}, .lanes = 4};
    layers[3] = (struct layer_timing){
        .seconds = {1e-3, 3e-3, 1e-3}, .flops = {1e9, 2e9}, .bytes = 1e8, .ways = {"product"}};
    return (struct timing){.model = model,
                           .kernels = kernels,
                           .mode = NET_TRAIN,
                           .batch = 8,
                           .passes = 9,
                           .limits = {.flops = 1e12, .bytes = 1e11},
                           .layers = layers};
}

static void test_show(struct tap *tap) {
    struct layer_timing layers[4];
    struct model *model = parse(tap, text);
    struct kernels kernels = {.name = "Y"};
    struct timing timing = invented(model, &kernels, layers);
    TEST(tap, "the table shows times, rates, shares and limits", {
        char *table = timing_text(&timing);
        CHECK_TEXT(
            tap, table,
            "layer  type     output  layout       kernels           forward  GFLOP/s  backward  "
            "GFLOP/s  update   share  of peak  of memory\n"
            "input  input    1x4x4   plain        -                   0.000        -     0.000  "
            "      -   0.000    0.0%        -          -\n"
            "c      conv     2x4x4   blocks of 4  direct/-/columns    1.000    100.0     2.000  "
            "   50.0   1.000   40.0%     5.0%       0.0%\n"
            "p      maxpool  2x2x2   blocks of 4  -                   0.500        -     0.500  "
            "      -   0.000   10.0%        -          -\n"
            "s      softmax  3       plain        product             1.000   1000.0     3.000  "
            "  666.7   1.000   50.0%    60.0%      20.0%\n"
            "total                                                    2.500    440.0     5.500  "
            "  381.8   2.000  100.0%    32.0%      10.0%\n"
            "training, mini-batch 8, one thread: 800.0 samples/s, 320.0 useful GFLOP/s\n"
            "limits of one core (Y): 1000.0 GFLOP/s, weights read at 100.0 GB/s\n"
            "layers without multiplications: 10.0% of the time\n");
        free(table);
    });
    TEST(tap, "the object has the same", {
        json_t *object = timing_json(&timing);
        char *line = json_line(object);
        CHECK(tap, line && strstr(line, "\"samples_per_s\":800.0,"));
        CHECK(tap, line && strstr(line, "\"other_share\":0.1,"));
        CHECK(tap, line && strstr(line, "\"lanes\":4,\"ways\":[\"direct\",null,\"columns\"],"
                                        "\"forward_s\":0.001,\"backward_s\":0.002,"));
        free(line);
        json_decref(object);
    });
    model_free(model);
}

int main(void) {
    struct tap tap = {0};
    test_run(&tap);
    test_show(&tap);
    return tap_done(&tap);
}
