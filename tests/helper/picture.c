// Pictures through the library, for comparison with other programs:
//   picture decode [CHANNELS [LEAST_WIDTH LEAST_HEIGHT]]   any picture to PNM
//   picture encode EXTENSION [QUALITY]                     any picture to that
//   picture resize FILTER WIDTH HEIGHT [LEFT TOP WIDTH HEIGHT]
//   picture floats FILTER WIDTH HEIGHT                     resize in floats, raw floats out
// Reads standard input and writes standard output.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "image/codec.h"
#include "image/resize.h"

struct job {
    int argc;
    char **argv;
    struct image image;
    struct error err;
};

static int number(const struct job *job, int i) {
    return i < job->argc ? atoi(job->argv[i]) : 0;
}

static int read_picture(struct job *job, const struct decode_options *options) {
    size_t size = 0, got;
    uint8_t *data = NULL;
    do {
        uint8_t *more = mem_resize(data, size + 65536, 1);
        if (!more)
            return error_nomem(&job->err);
        data = more;
        size += got = fread(data + size, 1, 65536, stdin);
    } while (got > 0);
    int status = image_decode(&job->image, data, size, options, &job->err);
    free(data);
    return status;
}

static int write_picture(struct job *job, enum codec codec, int quality) {
    void *data;
    size_t size;
    int status = image_encode(&data, &size, &job->image, codec, quality, &job->err);
    if (!status) {
        fwrite(data, 1, size, stdout);
        free(data);
    }
    return status;
}

static int resize(struct job *job) {
    static const char *const names[] = {"area", "bilinear", "lanczos"};
    enum filter filter = FILTER_AREA;
    while (filter < FILTER_LANCZOS && strcmp(names[filter], job->argv[2]) != 0)
        filter++;
    struct image result = {0};
    int width = number(job, 3), height = number(job, 4);
    bool part = job->argc > 8;
    int status =
        image_resize(&result, &job->image, filter, width, height, part ? number(job, 5) : 0,
                     part ? number(job, 6) : 0, part ? number(job, 7) : width,
                     part ? number(job, 8) : height, &job->err);
    image_swap(&job->image, &result);
    image_free(&result);
    return status;
}

static int resize_floats(struct job *job) {
    struct image floats = {0};
    const struct image *u8 = &job->image;
    int status = image_shape(&floats, u8->width, u8->height, u8->channels, PIXEL_F32, &job->err);
    for (size_t i = 0; !status && i < image_values(u8); i++)
        floats.f32[i] = u8->u8[i];
    image_swap(&job->image, &floats);
    image_free(&floats);
    return status ? status : resize(job);
}

static int run(struct job *job) {
    const char *what = job->argv[1];
    bool decode = !strcmp(what, "decode");
    struct decode_options options = {.channels = decode ? number(job, 2) : 0,
                                     .least_width = decode ? number(job, 3) : 0,
                                     .least_height = decode ? number(job, 4) : 0};
    int status = read_picture(job, &options);
    if (status || decode)
        return status ? status : write_picture(job, CODEC_PNM, 0);
    if (!strcmp(what, "encode"))
        return write_picture(job, codec_of_extension(job->argv[2]), number(job, 3));
    if (!strcmp(what, "resize"))
        return (status = resize(job)) ? status : write_picture(job, CODEC_PNM, 0);
    status = resize_floats(job);
    if (!status)
        fwrite(job->image.data, 1, image_bytes(&job->image), stdout);
    return status;
}

int main(int argc, char **argv) {
    struct job job = {.argc = argc, .argv = argv};
    int status = argc > 1 ? run(&job) : STATUS_USAGE;
    if (status)
        fprintf(stderr, "%s\n", job.err.text);
    image_free(&job.image);
    return status;
}
