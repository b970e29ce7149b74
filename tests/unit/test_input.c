// A picture's way into its place of a batch.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "data/input.h"
#include "ops/op.h"

enum { VALUES = 12, PLACES = 2 }; // 2 rows of 2 pixels of 3 channels

static const float planes[VALUES] = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11};

struct scene {
    struct input_config config;
    struct input input;
    struct ops *ops;
    float values[PLACES * VALUES];
    int32_t label[PLACES];
    uint64_t draw[PLACES];
    uint8_t bytes[VALUES];
    struct batch batch;
    struct image picture;
};

static void open_scene(struct tap *tap, struct scene *s, const char *ops) {
    size_t offset, length;
    *s = (struct scene){.config = {.channels = 3, .height = 2, .width = 2, .classes = 5}};
    if (ops)
        CHECK_INT(tap, ops_parse(&s->ops, ops, 0, &offset, &length, NULL), STATUS_OK);
    s->config.input = s->ops;
    CHECK_INT(tap, input_open(&s->input, &s->config, NULL), STATUS_OK);
    for (int i = 0; i < VALUES; i++)
        s->bytes[i] = (uint8_t)i;
    for (int i = 0; i < PLACES * VALUES; i++)
        s->values[i] = -1;
    s->batch = (struct batch){.input = s->values, .label = s->label, .draw = s->draw};
    s->picture =
        (struct image){.width = 2, .height = 2, .channels = 3, .type = PIXEL_U8, .u8 = s->bytes};
}

static void close_scene(struct scene *s) {
    input_close(&s->input);
    ops_free(s->ops);
}

// Place i has the planes, each value multiplied; the other place has what it had.
static void check_place(struct tap *tap, const struct scene *s, int i, double factor) {
    for (int v = 0; v < VALUES; v++) {
        CHECK_NEAR(tap, (double)s->values[i * VALUES + v], factor * (double)planes[v], 1e-6);
        CHECK_NEAR(tap, (double)s->values[!i * VALUES + v], -1, 0);
    }
}

static void test_place(struct tap *tap) {
    TEST(tap, "a picture is put into its place as one plane a channel", {
        for (int i = 0; i < PLACES; i++) {
            struct scene s;
            open_scene(tap, &s, NULL);
            CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, i, NULL), STATUS_OK);
            check_place(tap, &s, i, 1);
            close_scene(&s);
        }
    });
    TEST(tap, "operations change a copy of it, or the input's own picture itself", {
        struct scene s;
        open_scene(tap, &s, "scale 2");
        CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 1, NULL), STATUS_OK);
        check_place(tap, &s, 1, 2);
        for (int v = 0; v < VALUES; v++)
            CHECK_INT(tap, s.bytes[v], v);
        CHECK_INT(tap, image_copy(&s.input.image, &s.picture, NULL), STATUS_OK);
        CHECK_INT(tap, input_put(&s.input, &s.input.image, 1, &s.batch, 1, NULL), STATUS_OK);
        check_place(tap, &s, 1, 2);
        close_scene(&s);
    });
}

static void test_draw(struct tap *tap) {
    TEST(tap, "what dropout draws by depends on seed, epoch and sample, not on the place", {
        struct scene s;
        open_scene(tap, &s, NULL);
        uint64_t seen[4];
        for (int i = 0; i < 4; i++) {
            s.config.seed = i == 1;
            s.batch.epoch = i == 2;
            input_put(&s.input, &s.picture, 7 + (i == 3), &s.batch, i % 2, NULL);
            seen[i] = s.draw[i % 2];
            for (int j = 0; j < i; j++)
                CHECK(tap, seen[i] != seen[j]);
        }
        s.config.seed = s.batch.epoch = 0;
        input_put(&s.input, &s.picture, 7, &s.batch, 1, NULL);
        CHECK(tap, s.draw[1] == seen[0]);
        close_scene(&s);
    });
}

static void test_refusals(struct tap *tap) {
    TEST(tap, "a label that the model has no class for is refused", {
        static const int32_t labels[] = {-1, 0, 4, 5};
        struct scene s;
        open_scene(tap, &s, NULL);
        for (int i = 0; i < 4; i++) {
            s.label[0] = labels[i];
            CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 0, NULL),
                      i == 0 || i == 3 ? STATUS_DATA : STATUS_OK);
        }
        s.config.classes = 0;
        CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 0, NULL), STATUS_OK);
        close_scene(&s);
    });
    TEST(tap, "one that operations will not make fit is refused before they have a copy of it", {
        static const char *const chains[] = {"scale 2", "gray; scale 2", "crop 1; scale 2"};
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
            struct scene s;
            struct error err = {0};
            open_scene(tap, &s, chains[i]);
            s.config.channels = 3;
            s.config.width = 3;
            CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 0, &err), STATUS_DATA);
            CHECK(tap, strstr(err.text, "where the model reads 3x2x3"));
            CHECK_INT(tap, s.input.image.capacity, 0);
            close_scene(&s);
        }
    });
    TEST(tap, "what large pictures took is given back when it is asked for", {
        struct scene s;
        open_scene(tap, &s, "resize 2x2 exact; scale 2");
        s.config.channels = 1;
        struct image large = {0};
        CHECK_INT(tap, image_shape(&large, 1000, 1000, 1, PIXEL_U8, NULL), STATUS_OK);
        memset(large.u8, 1, 1000000);
        CHECK_INT(tap, input_put(&s.input, &large, 1, &s.batch, 0, NULL), STATUS_OK);
        const struct image *own = &s.input.image, *spare = &s.input.scratch->spare;
        size_t kept = own->capacity > spare->capacity ? own->capacity : spare->capacity;
        size_t small = own->capacity + spare->capacity - kept;
        CHECK(tap, kept >= 1000000 && small > 0);
        input_trim(&s.input, kept);
        CHECK_INT(tap, own->capacity + spare->capacity, small + kept);
        input_trim(&s.input, kept - 1);
        CHECK_INT(tap, own->capacity + spare->capacity, small);
        input_trim(&s.input, 0);
        CHECK_INT(tap, own->capacity + spare->capacity, 0);
        CHECK_INT(tap, input_put(&s.input, &large, 1, &s.batch, 0, NULL), STATUS_OK);
        image_free(&large);
        close_scene(&s);
    });
    TEST(tap, "a picture of another shape is refused, and the advice names what would help", {
        struct scene s;
        struct error err = {0};
        open_scene(tap, &s, NULL);
        s.config.channels = 1;
        s.config.width = 3;
        CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 0, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "3x2x2") && strstr(err.text, "1x2x3"));
        CHECK(tap, !strstr(err.text, "resize"));
        s.config.advise = true;
        CHECK_INT(tap, input_put(&s.input, &s.picture, 1, &s.batch, 0, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "1x2x3") && strstr(err.text, "'resize 3x2 exact; gray'"));
        CHECK_NEAR(tap, (double)s.values[0], -1, 0);
        close_scene(&s);
    });
}

int main(void) {
    struct tap tap = {0};
    test_place(&tap);
    test_draw(&tap);
    test_refusals(&tap);
    return tap_done(&tap);
}
