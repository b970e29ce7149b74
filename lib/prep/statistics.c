#include "prep/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/pipeline.h"

#define GROUP_SAMPLES 16
#define GROUP_BYTES (64 * 1024)

struct measured {
    int status;
    struct error error;
    struct sample sample;
    size_t bytes;
    bool not_finite; // a value of it: it has no sums
    double sum[STATISTICS_CHANNELS], squares[STATISTICS_CHANNELS];
};

struct measured_group {
    int count;
    struct measured items[GROUP_SAMPLES];
    char kind[32];
};

struct measuring {
    const struct statistics_config *config;
    struct statistics *result;
    struct inputs *inputs;
    struct classes classes; // the reader's
    struct error failed;    // waits for the group before it to leave
    // The writer's.
    double sum[STATISTICS_CHANNELS], squares[STATISTICS_CHANNELS], pixels;
    uint64_t finite;       // samples that these are of
    int measured_channels; // -1: pictures of too many kinds
    double *pixel_sums;    // of the first picture's shape; NULL: not wanted, or no picture yet
    int width, height, channels; // of that picture
    size_t count_capacity;
};

static int read_sample_group(void *context, void *slot, bool *more, struct error *err) {
    struct measuring *m = context;
    struct measured_group *g = slot;
    size_t bytes = 0;
    bool again = true;
    int status = m->failed.status;
    g->count = 0;
    if (status)
        *err = m->failed;
    while (!status && g->count < GROUP_SAMPLES && bytes < GROUP_BYTES) {
        struct measured *item = &g->items[g->count];
        status = item->status = inputs_next(m->inputs, &item->sample, &again, &item->error);
        if ((status && status != STATUS_SKIPPED) || !again)
            break;
        status = STATUS_OK;
        const struct sample *s = &item->sample;
        item->bytes = item->status ? 0 : s->encoded_size ? s->encoded_size : image_bytes(&s->image);
        bytes += item->bytes;
        g->count++;
        snprintf(g->kind, sizeof g->kind, "%s", inputs_kind(m->inputs));
    }
    if (status && !m->failed.status) {
        m->failed = g->items[g->count].error;
        *err = m->failed;
    }
    *more = g->count > 0;
    return g->count ? STATUS_OK : status;
}

// Sums of each channel of `pixels` interleaved pixels.
static void add_bytes(struct measured *m, const uint8_t *from, size_t pixels, int channels) {
    for (int c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (size_t i = 0; i < pixels; i++) {
            uint32_t value = from[i * (size_t)channels + (size_t)c];
            sum += value, squares += value * value;
        }
        m->sum[c] = (double)sum / 255, m->squares[c] = (double)squares / (255.0 * 255);
    }
}

static void add_floats(struct measured *m, const float *from, size_t pixels, int channels) {
    for (int c = 0; c < channels; c++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < pixels; i++) {
            double value = (double)from[i * (size_t)channels + (size_t)c];
            sum += value, squares += value * value;
        }
        m->sum[c] = sum, m->squares[c] = squares;
    }
}

static bool image_is_finite(const struct image *image) {
    size_t n = image->type == PIXEL_F32 ? image_values(image) : 0, i = 0;
    while (i < n && isfinite(image->f32[i]))
        i++;
    return i == n;
}

// The picture of a sample as it is asked for.
static int ready_picture(const struct measuring *m, struct sample *sample, struct error *err) {
    const struct decode_options *options = &m->config->inputs.source.decode;
    return sample->encoded_size
               ? image_decode(&sample->image, sample->encoded, sample->encoded_size, options, err)
               : image_channels(&sample->image, options->channels, err);
}

static int measure_samples(void *context, int worker, void *slot, struct error *err) {
    const struct measuring *m = context;
    struct measured_group *g = slot;
    (void)worker;
    (void)err;
    for (int i = 0; i < g->count; i++) {
        struct measured *item = &g->items[i];
        struct image *image = &item->sample.image;
        if (item->status)
            continue;
        item->status = ready_picture(m, &item->sample, &item->error);
        item->not_finite = !item->status && !image_is_finite(image);
        if (item->status || item->not_finite || image->channels > STATISTICS_CHANNELS)
            continue;
        size_t pixels = (size_t)image->width * (size_t)image->height;
        if (image->type == PIXEL_U8)
            add_bytes(item, image->u8, pixels, image->channels);
        else
            add_floats(item, image->f32, pixels, image->channels);
    }
    return STATUS_OK;
}

static void widen_range(int range[2], int value, bool first) {
    range[0] = first || value < range[0] ? value : range[0];
    range[1] = first || value > range[1] ? value : range[1];
}

// From gray to colour: what was measured so far counts for all three channels.
static void spread_gray(double values[STATISTICS_CHANNELS]) {
    values[1] = values[2] = values[0];
}

// Adds a picture's sums. Gray pictures among coloured ones count as coloured.
static void add_moments(struct measuring *m, struct measured *item) {
    const struct image *image = &item->sample.image;
    bool floats = image->type == PIXEL_F32, first = m->finite++ == 0;
    int channels = image->channels;
    if (first)
        m->measured_channels = channels, m->result->floats = floats;
    if (m->measured_channels == 1 && channels == 3) {
        spread_gray(m->sum);
        spread_gray(m->squares);
        m->measured_channels = 3;
    } else if (m->measured_channels == 3 && channels == 1) {
        spread_gray(item->sum);
        spread_gray(item->squares);
        channels = 3;
    }
    if (channels != m->measured_channels || channels > STATISTICS_CHANNELS ||
        floats != m->result->floats)
        m->measured_channels = -1;
    for (int c = 0; c < m->measured_channels; c++)
        m->sum[c] += item->sum[c], m->squares[c] += item->squares[c];
    m->pixels += (double)image->width * image->height;
}

// The sums of each pixel. Shapes that differ end the run: no mean suits them all.
static int add_pixels(struct measuring *m, const struct measured *item, struct error *err) {
    const struct image *image = &item->sample.image;
    size_t n = image_values(image);
    if (!m->pixel_sums) {
        m->width = image->width, m->height = image->height, m->channels = image->channels;
        if (!(m->pixel_sums = mem_zeroed(n, sizeof *m->pixel_sums)))
            return error_nomem(err);
    }
    if (image->width != m->width || image->height != m->height || image->channels != m->channels)
        return error_set(err, STATUS_DATA,
                         "%s: %dx%dx%d, and the first was %dx%dx%d (channels x height x width): "
                         "for a mean of each pixel all pictures must have one shape",
                         item->sample.path, image->channels, image->height, image->width,
                         m->channels, m->height, m->width);
    for (size_t i = 0; i < n; i++)
        m->pixel_sums[i] += image->type == PIXEL_U8 ? image->u8[i] / 255.0 : (double)image->f32[i];
    return STATUS_OK;
}

static int count_label(struct measuring *m, int label, struct error *err) {
    if (label < 0) {
        m->result->unlabelled++;
        return STATUS_OK;
    }
    if ((size_t)label >= m->count_capacity) {
        size_t wanted = (size_t)label * 2 + 16;
        uint64_t *counts = mem_resize(m->result->counts, wanted, sizeof *counts);
        if (!counts)
            return error_nomem(err);
        memset(counts + m->count_capacity, 0, (wanted - m->count_capacity) * sizeof *counts);
        m->result->counts = counts, m->count_capacity = wanted;
    }
    m->result->counts[label]++;
    return STATUS_OK;
}

static int note_not_finite(struct statistics *r, const struct measured *item, struct error *err) {
    if (r->not_finite++ == 0 && !(r->first_not_finite = mem_string(item->sample.path)))
        return error_nomem(err);
    return STATUS_OK;
}

static int add_sample_values(struct measuring *m, struct measured *item, struct error *err) {
    add_moments(m, item);
    return m->config->pixel_mean ? add_pixels(m, item, err) : STATUS_OK;
}

static int count_sample(struct measuring *m, struct measured *item, struct error *err) {
    struct statistics *r = m->result;
    const struct image *image = &item->sample.image;
    if (item->status && item->status != STATUS_SKIPPED && item->status != STATUS_DATA) {
        *err = item->error;
        return item->status;
    }
    if (item->status) {
        r->damaged += item->sample.missing;
        return m->config->rejected ? m->config->rejected(m->config->context, item->sample.path,
                                                         item->error.text, err)
                                   : STATUS_OK;
    }
    bool first = r->samples++ == 0;
    r->bytes += item->bytes;
    widen_range(r->width, image->width, first);
    widen_range(r->height, image->height, first);
    widen_range(r->channels, image->channels, first);
    int status = item->not_finite ? note_not_finite(r, item, err) : add_sample_values(m, item, err);
    if (status)
        return status;
    return count_label(m, item->sample.label, err);
}

static int add_group(void *context, void *slot, struct error *err) {
    struct measuring *m = context;
    struct measured_group *g = slot;
    int status = STATUS_OK;
    for (int i = 0; i < g->count && !status; i++)
        status = count_sample(m, &g->items[i], err);
    if (*m->result->kind && strcmp(m->result->kind, g->kind) != 0)
        snprintf(m->result->kind, sizeof m->result->kind, "mixed");
    else
        memcpy(m->result->kind, g->kind, sizeof g->kind);
    if (m->config->progress)
        m->config->progress(m->config->context, m->result->samples);
    return status;
}

static int measure_all(struct measuring *m, struct error *err) {
    int slots = 2 * m->config->threads + 2;
    struct measured_group *groups = mem_zeroed((size_t)slots, sizeof *groups);
    if (!groups)
        return error_nomem(err);
    struct pipeline pipeline = {
        .threads = m->config->threads,
        .slots = groups,
        .slot_size = sizeof *groups,
        .slot_count = slots,
        .context = m,
        .read = read_sample_group,
        .work = measure_samples,
        .write = add_group,
        .stopped = m->config->stopped,
    };
    int status = pipeline_run(&pipeline, err);
    for (int i = 0; i < slots; i++)
        for (int k = 0; k < GROUP_SAMPLES; k++)
            sample_free(&groups[i].items[k].sample);
    free(groups);
    return status;
}

// The mean of each pixel, and how far the channels are from it.
static int finish_pixels(struct measuring *m, struct error *err) {
    struct statistics *r = m->result;
    int channels = r->moments;
    if (!channels)
        return error_set(err, STATUS_DATA,
                         "there is no mean of each pixel: pictures of several "
                         "kinds, or of too many channels");
    int status = image_shape(&r->picture, m->width, m->height, channels, PIXEL_F32, err);
    double squares[STATISTICS_CHANNELS] = {0};
    for (size_t i = 0; !status && i < image_values(&r->picture); i++) {
        double mean = m->pixel_sums[i] / (double)m->finite;
        r->picture.f32[i] = (float)mean;
        squares[i % (size_t)channels] += mean * mean;
    }
    double pixels = (double)m->width * m->height;
    for (int c = 0; c < channels; c++)
        r->rest[c] = sqrt(fmax(0, m->squares[c] / m->pixels - squares[c] / pixels));
    return status;
}

// Takes the class names over, and gives every class a count.
static int count_classes(struct measuring *m, struct error *err) {
    struct statistics *r = m->result;
    uint64_t *counts = mem_zeroed((size_t)m->classes.count + 1, sizeof *counts);
    if (!counts)
        return error_nomem(err);
    for (int i = 0; i < m->classes.count && (size_t)i < m->count_capacity; i++)
        counts[i] = r->counts[i];
    free(r->counts);
    r->counts = counts;
    r->classes = m->classes;
    m->classes = (struct classes){0};
    r->moments = m->measured_channels > 0 ? m->measured_channels : 0;
    for (int c = 0; c < r->moments; c++) {
        double mean = m->sum[c] / m->pixels;
        r->mean[c] = mean;
        r->deviation[c] = sqrt(fmax(0, m->squares[c] / m->pixels - mean * mean));
    }
    return m->config->pixel_mean ? finish_pixels(m, err) : STATUS_OK;
}

int statistics_run(const struct statistics_config *config, struct statistics *statistics,
                   struct error *err) {
    *statistics = (struct statistics){0};
    struct measuring m = {.config = config, .result = statistics};
    int status = STATUS_OK, label;
    for (int i = 0; config->classes && i < config->classes->count && !status; i++)
        status = classes_label(&m.classes, config->classes->names[i], &label, err);
    if (!status)
        status = inputs_open(&m.inputs, &config->inputs, &m.classes, err);
    if (!status)
        status = measure_all(&m, err);
    if (!status)
        status = count_classes(&m, err);
    free(m.pixel_sums);
    inputs_close(m.inputs);
    classes_free(&m.classes);
    return status;
}

void statistics_free(struct statistics *statistics) {
    classes_free(&statistics->classes);
    free(statistics->counts);
    free(statistics->first_not_finite);
    image_free(&statistics->picture);
    *statistics = (struct statistics){0};
}

static void put_list(FILE *to, const double *values, int count) {
    for (int i = 0; i < count; i++)
        fprintf(to, "%s%.4g", i ? "," : "", values[i]);
}

char *statistics_ops(const struct statistics *statistics, const char *picture) {
    char *text = NULL;
    size_t size;
    FILE *to = statistics->moments ? open_memstream(&text, &size) : NULL;
    if (!to)
        return NULL;
    const double *spread = picture ? statistics->rest : statistics->deviation;
    fputs(statistics->floats ? "mean " : "scale 1/255; mean ", to);
    if (picture)
        fprintf(to, "file=%s", picture);
    else
        put_list(to, statistics->mean, statistics->moments);
    double deviation[STATISTICS_CHANNELS]; // of a channel without any: left as it is
    for (int c = 0; c < statistics->moments; c++)
        deviation[c] = spread[c] > 1e-6 ? spread[c] : 1;
    fputs("; std ", to);
    put_list(to, deviation, statistics->moments);
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    return text;
}
