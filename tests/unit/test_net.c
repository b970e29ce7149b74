// What a context tells about itself: who works when, and how much of it is useful.
#include <stdlib.h>

#include "../helper/model_find.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "kernels/kernels.h"
#include "model/layer.h"
#include "model/net.h"

static const char branches[] = "input 2x6x6\n"
                               "maxpool p size=2\n"
                               "conv a from=p maps=3 kernel=3 pad=1\n"
                               "conv b from=p maps=2 kernel=3 pad=1\n"
                               "concat j from=a,b\n"
                               "dense d units=4\n"
                               "softmax s units=3\n";

struct story {
    char text[512];
    size_t length;
};

static void note(void *self, const struct layer *layer, enum net_pass pass) {
    struct story *story = self;
    story->length +=
        (size_t)snprintf(story->text + story->length, sizeof story->text - story->length, "%c%s ",
                         pass == NET_FORWARD ? '+' : '-', layer->name);
}

static void note_ready(void *self, const struct layer *layer, const float *gradient) {
    struct story *story = self;
    (void)gradient;
    story->length += (size_t)snprintf(story->text + story->length,
                                      sizeof story->text - story->length, "=%s ", layer->name);
}

static bool open_net(struct tap *tap, const char *text, struct model **model, struct net **net) {
    struct error err = {0};
    *model = NULL, *net = NULL;
    if (!model_parse(model, "test.net", text, NULL, 0, &err) &&
        !net_open(net, *model, kernels_best(), 2, NET_TRAIN, &err))
        return true;
    FAIL(tap, "%s", err.text);
    return false;
}

// What a net of `text` tells of a step of so many samples, and of a pass that nobody watches
// any more, behind it.
static void check_story(struct tap *tap, const char *text, int n, const char *layer,
                        const char *in_blocks, const char *plain) {
    struct model *model;
    struct net *net;
    struct story story = {0};
    int32_t labels[2] = {0, 2};
    if (open_net(tap, text, &model, &net)) {
        size_t in = (size_t)n * shape_size(model_input(model)->out);
        float *parameters = mem_floats(model->parameter_count), *input = mem_floats(in);
        float *gradient = mem_floats(model->parameter_count);
        net_watched(net, note, &story);
        net_forward(net, parameters, input, n, NULL, 0);
        net_backward(net, parameters, labels, 1, gradient, note_ready, &story);
        bool blocks = net_lanes(net, model_find(model, layer)) > 0;
        CHECK_TEXT(tap, story.text, blocks ? in_blocks : plain);
        net_watched(net, NULL, NULL);
        net_forward(net, parameters, input, n, NULL, 0);
        CHECK_INT(tap, strlen(story.text), story.length);
        free(parameters), free(input), free(gradient);
    }
    net_close(net);
    model_free(model);
}

static void test_watch(struct tap *tap) {
    TEST(tap, "layers tell when they are done, in order, before their gradients are used", {
        static const char told[] = "+input +p +a +b +j +d +s -s =s -d =d -j -b =b -a =a ";
        check_story(tap, branches, 2, "a", told, told);
    });
    TEST(tap, "a large convolution and its pool take turns, band by band", {
        check_story(tap,
                    "input 3x100x100\nconv a maps=16 kernel=5\nmaxpool p size=3\n"
                    "softmax s units=3\n",
                    1, "a", "+input +a +p +a +p +a +p +s -s =s -p -a -p -a -p -a =a ",
                    "+input +a +p +s -s =s -p -a =a ");
    });
}

// Counted place by place.
static uint64_t count_taps(const struct layer *l) {
    uint64_t taps = 0;
    for (int y = 0; y < l->out.h; y++)
        for (int x = 0; x < l->out.w; x++)
            for (int ky = 0; ky < l->kernel.h; ky++)
                for (int kx = 0; kx < l->kernel.w; kx++) {
                    int row = y * l->stride.h - l->pad.h + ky;
                    int column = x * l->stride.w - l->pad.w + kx;
                    taps += row >= 0 && row < l->in.h && column >= 0 && column < l->in.w;
                }
    return taps;
}

static void test_useful(struct tap *tap) {
    TEST(tap, "multiplies on padding are not useful, in no shape of convolution", {
        static const char *const lines[] = {
            "conv c maps=6 kernel=3 pad=1",
            "conv c maps=6 kernel=5x3 pad=4x0 groups=2",
            "conv c maps=2 kernel=3 stride=2 pad=2",
            "conv c maps=4 kernel=4 stride=3 round=up",
            "conv c maps=3 kernel=1",
            "local c maps=6 kernel=3x2 pad=2x1 stride=2",
        };
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            char text[256];
            struct model *model;
            struct net *net;
            snprintf(text, sizeof text, "input 4x7x9\n%s\nsoftmax units=3\n", lines[i]);
            if (open_net(tap, text, &model, &net)) {
                const struct layer *l = &model->layers[1];
                uint64_t groups = l->groups > 1 ? (uint64_t)l->groups : 1;
                CHECK_INT(tap, l->useful, count_taps(l) * 4 / groups * (uint64_t)l->maps);
            }
            net_close(net);
            model_free(model);
        }
    });
    TEST(tap, "errors that nobody wants are not useful either", {
        struct model *model;
        struct net *net;
        if (open_net(tap, branches, &model, &net)) {
            const struct layer *a = model_find(model, "a"), *d = model_find(model, "d");
            CHECK_INT(tap, a->useful, 7 * 7 * 2 * 3); // 3 + 2 + 2 taps a side of 3 pixels
            CHECK_INT(tap, net_multiplies(net, a, NET_FORWARD), a->useful);
            CHECK_INT(tap, net_multiplies(net, a, NET_BACKWARD), a->useful);
            CHECK_INT(tap, net_multiplies(net, d, NET_FORWARD), 45 * 4);
            CHECK_INT(tap, net_multiplies(net, d, NET_BACKWARD), 2 * 45 * 4);
        }
        net_close(net);
        model_free(model);
    });
}

int main(void) {
    struct tap tap = {0};
    test_watch(&tap);
    test_useful(&tap);
    return tap_done(&tap);
}
