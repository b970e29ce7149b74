// Pictures per second on one core: 256x256 RGB bytes in memory are rotated,
// cropped to 224x224, flipped by chance, and become floats, one plane a channel.
//   warp [SECONDS] [CHAIN]
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "data/input.h"
#include "ops/ops.h"

enum { PICTURES = 64, SIDE = 256, RESULT = 224 };

static const char standard_chain[] =
    "rotate 10 border=reflect; crop 224 random; hflip p=0.5; scale 1/255";

static int fill(struct image *image, uint64_t seed, struct error *err) {
    struct random random = random_stream(seed, 0, 0);
    int status = image_shape(image, SIDE, SIDE, 3, PIXEL_U8, err);
    size_t n = status ? 0 : image_values(image);
    for (size_t i = 0; i < n; i++)
        image->u8[i] = (uint8_t)random_u32(&random);
    return status;
}

static int run(const struct ops *ops, double seconds, double *rate, struct error *err) {
    static struct image pictures[PICTURES];
    static float planes[3 * RESULT * RESULT];
    static int32_t label;
    struct batch batch = {.input = planes, .label = &label};
    const struct input_config config = {
        .before = ops, .channels = 3, .height = RESULT, .width = RESULT, .seed = 1};
    struct input input;
    int status = input_open(&input, &config, err);
    for (int i = 0; i < PICTURES && !status; i++)
        status = fill(&pictures[i], (uint64_t)i, err);
    double start = clock_seconds(), now = start;
    uint64_t done = 0;
    for (; !status && now - start < seconds; now = clock_seconds())
        for (int i = 0; i < PICTURES && !status; i++, done++)
            status = input_put(&input, &pictures[i], done, &batch, 0, err);
    *rate = (double)done / (now - start);
    input_close(&input);
    for (int i = 0; i < PICTURES; i++)
        image_free(&pictures[i]);
    return status;
}

int main(int argc, char **argv) {
    struct error err = {0};
    struct ops *ops;
    size_t offset, length;
    double rate = 0, seconds = argc > 1 ? atof(argv[1]) : 1;
    const char *chain = argc > 2 ? argv[2] : standard_chain;
    int status = ops_parse(&ops, chain, 0, &offset, &length, &err);
    if (!status)
        status = run(ops, seconds, &rate, &err);
    ops_free(ops);
    if (status)
        fprintf(stderr, "warp: error: %s\n", err.text);
    else
        printf("%.1f\n", rate);
    return status;
}
