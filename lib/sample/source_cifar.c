// CIFAR-10 and CIFAR-100 in their binary version: one label byte, or two (coarse
// and fine), then 1024 bytes each of red, green and blue.
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/source_kind.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, MOST_CLASSES = 100 };

// The names of batches.meta.txt, fine_label_names.txt and coarse_label_names.txt.
static const char *const cifar10_names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};
// clang-format off
static const char *const fine_names[] = {
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone",
    "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm"};
static const char *const coarse_names[] = {
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes",
    "large_omnivores_and_herbivores", "medium_mammals", "non-insect_invertebrates", "people",
    "reptiles", "small_mammals", "trees", "vehicles_1", "vehicles_2"};
// clang-format on

struct layout {
    size_t labels; // bytes before the pixels
    size_t which;  // of them is the label
    const char *const *names;
    int classes;
};
static const struct layout cifar10 = {1, 0, cifar10_names, 10};
static const struct layout cifar100 = {2, 1, fine_names, 100};
static const struct layout coarse = {2, 0, coarse_names, 20};

struct cifar_source {
    const struct layout *layout;
    int labels[MOST_CLASSES]; // label of the file to the reader's label
    uint64_t number;
};

// There is no magic number: the name says *.bin, and the labels are in bounds
// in each record at the head.
static bool looks_like(const struct layout *layout, const char *path, const uint8_t *data,
                       size_t size) {
    size_t record = layout->labels + PIXELS;
    if (!strstr(path, ".bin") || size < record)
        return false;
    for (size_t at = 0; at < size; at += record) {
        bool first = data[at] < (layout->labels == 1 ? 10 : 20);
        bool second = layout->labels == 1 || at + 1 >= size || data[at + 1] < 100;
        if (!first || !second)
            return false;
    }
    return true;
}

static bool recognise10(const char *path, const uint8_t *data, size_t size) {
    return looks_like(&cifar10, path, data, size);
}

static bool recognise100(const char *path, const uint8_t *data, size_t size) {
    return looks_like(&cifar100, path, data, size);
}

static int open_cifar(struct source *source, const struct layout *layout, struct error *err) {
    struct cifar_source *state = source->state = mem_zeroed(1, sizeof *state);
    if (!state)
        return error_nomem(err);
    state->layout = layout;
    int status = format_check_size(SIDE, SIDE, &source->options.decode, err);
    if (status)
        return error_context(err, "%s", stream_name(source->stream));
    for (int i = 0; !status && i < layout->classes; i++)
        if (source->options.label_from == LABEL_NO)
            state->labels[i] = LABEL_NONE;
        else
            status = classes_label(source->classes, layout->names[i], &state->labels[i], err);
    return status;
}

static int open10(struct source *source, struct error *err) {
    return open_cifar(source, &cifar10, err);
}

static int open100(struct source *source, struct error *err) {
    return open_cifar(source, &cifar100, err);
}

static int open_coarse(struct source *source, struct error *err) {
    return open_cifar(source, &coarse, err);
}

static void close_cifar(struct source *source) {
    free(source->state);
}

static int64_t cifar_count(const struct source *source) {
    const struct cifar_source *state = source->state;
    int64_t size = stream_size(source->stream);
    return size < 0 ? -1 : size / (int64_t)(state->layout->labels + PIXELS);
}

static int cifar_next(struct source *source, struct sample *sample, bool *more, struct error *err) {
    struct cifar_source *state = source->state;
    const struct layout *layout = state->layout;
    uint8_t record[2 + PIXELS];
    size_t size = layout->labels + PIXELS, got;
    int status = stream_read(source->stream, record, size, &got, err);
    *more = got > 0;
    if (status || !*more)
        return status;
    uint64_t number = state->number++;
    if (got < size)
        return error_set(err, STATUS_DATA, "%s: ends within record %llu, at offset %llu",
                         stream_name(source->stream), (unsigned long long)number,
                         (unsigned long long)stream_offset(source->stream));
    if ((status = source_number(source, sample, number, err)))
        return status;
    int label = record[layout->which];
    if (label >= layout->classes)
        return error_set(err, STATUS_SKIPPED, "label %d, of %d classes", label, layout->classes);
    sample->label = state->labels[label];
    if ((status = image_shape(&sample->image, SIDE, SIDE, 3, PIXEL_U8, err)))
        return status;
    const uint8_t *planes = record + layout->labels;
    for (size_t i = 0; i < PLANE; i++)
        for (size_t c = 0; c < 3; c++)
            sample->image.u8[3 * i + c] = planes[c * PLANE + i];
    return STATUS_OK;
}

const struct source_kind source_cifar10 = {
    .name = "cifar10",
    .recognise = recognise10,
    .open = open10,
    .next = cifar_next,
    .count = cifar_count,
    .close = close_cifar,
};

const struct source_kind source_cifar100 = {
    .name = "cifar100",
    .recognise = recognise100,
    .open = open100,
    .next = cifar_next,
    .count = cifar_count,
    .close = close_cifar,
};

const struct source_kind source_cifar100_coarse = {
    .name = "cifar100-coarse",
    .open = open_coarse,
    .next = cifar_next,
    .count = cifar_count,
    .close = close_cifar,
};
