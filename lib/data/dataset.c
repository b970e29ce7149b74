#include "data/dataset.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "sample/arec_index.h"
#include "sample/targets.h"
#include "store/crc.h"
#include "store/map.h"

// Where the bytes of a sample are.
enum item_storage {
    ITEM_IN_MEMORY, // in `bytes`, at `offset`
    ITEM_IN_MAP,    // in the mapped records, the chunk at `offset`
    ITEM_IN_FILE,   // in a file of its own, whose path is in `bytes` at `offset`
};

struct dataset_item {
    uint64_t offset;
    uint64_t size; // ITEM_IN_MEMORY: of the sample; ITEM_IN_FILE: most that is read
    uint64_t key;  // in `keys`; ITEM_IN_MAP: the record has it
    int32_t label;
    uint32_t row;                     // of its targets, where there are any
    uint16_t width, height, channels; // 0: encoded
    uint8_t storage, type;
};

// Grows by half, so that growing costs no more than filling.
struct growing_bytes {
    uint8_t *data;
    size_t size, capacity;
};

struct dataset {
    char *name; // for messages
    struct classes classes;
    struct targets *targets; // NULL: none
    struct dataset_item *items;
    uint32_t count, capacity;
    struct growing_bytes bytes, keys;
    struct map map;        // records of ours
    atomic_uchar *checked; // by sample: whether its CRC-32 was found right
    uint32_t digest;
};

static int bytes_add(struct growing_bytes *bytes, const void *data, size_t size, uint64_t *offset,
                     struct error *err) {
    size_t wanted;
    if (__builtin_add_overflow(bytes->size, size, &wanted))
        return error_nomem(err);
    if (wanted > bytes->capacity) {
        size_t capacity = bytes->capacity + bytes->capacity / 2;
        capacity = capacity < wanted ? wanted : capacity;
        uint8_t *grown = mem_resize(bytes->data, capacity, 1);
        if (!grown)
            return error_nomem(err);
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (size > 0)
        memcpy(bytes->data + bytes->size, data, size);
    *offset = bytes->size;
    bytes->size = wanted;
    return STATUS_OK;
}

// One more item, or NULL with the reason in `err`.
static struct dataset_item *item_add(struct dataset *dataset, struct error *err) {
    if (dataset->count == UINT32_MAX) {
        error_set(err, STATUS_DATA, "%s: more than 2^32 - 1 samples", dataset->name);
        return NULL;
    }
    if (dataset->count == dataset->capacity) {
        uint32_t capacity = dataset->count < UINT32_MAX / 2 ? 2 * dataset->count : UINT32_MAX;
        capacity = capacity ? capacity : 1024;
        struct dataset_item *items = mem_resize(dataset->items, capacity, sizeof *items);
        if (!items) {
            error_nomem(err);
            return NULL;
        }
        dataset->items = items;
        dataset->capacity = capacity;
    }
    struct dataset_item *item = &dataset->items[dataset->count++];
    *item = (struct dataset_item){.label = LABEL_NONE};
    return item;
}

static void digest_targets(struct dataset *dataset) {
    size_t bytes = (size_t)dataset_target_count(dataset) * sizeof(float);
    for (uint32_t i = 0; bytes > 0 && i < dataset->count; i++)
        dataset->digest = crc32_of(dataset->digest, dataset_targets(dataset, i), bytes);
}

static void digest_add(struct dataset *dataset, uint32_t key_crc, int32_t label) {
    uint8_t bytes[8];
    for (int i = 0; i < 4; i++) {
        bytes[i] = (uint8_t)(key_crc >> 8 * i);
        bytes[4 + i] = (uint8_t)((uint32_t)label >> 8 * i);
    }
    dataset->digest = crc32_of(dataset->digest, bytes, sizeof bytes);
}

// Keeps what a source gave; file_bytes: most bytes of its file, 0 when it came whole.
static int dataset_add(struct dataset *dataset, const struct sample *sample, uint64_t file_bytes,
                       struct error *err) {
    struct dataset_item *item = item_add(dataset, err);
    if (!item)
        return err->status;
    int status = bytes_add(&dataset->keys, sample->key, strlen(sample->key) + 1, &item->key, err);
    if (status)
        return status;
    item->label = sample->label;
    digest_add(dataset, crc32_of(0, sample->key, strlen(sample->key)), sample->label);
    if (file_bytes) {
        item->storage = ITEM_IN_FILE;
        item->size = file_bytes;
        return bytes_add(&dataset->bytes, sample->path, strlen(sample->path) + 1, &item->offset,
                         err);
    }
    bool encoded = sample->encoded_size > 0;
    const struct image *image = &sample->image;
    item->size = encoded ? sample->encoded_size : image_bytes(image);
    if (!encoded) {
        item->type = (uint8_t)image->type;
        item->width = (uint16_t)image->width;
        item->height = (uint16_t)image->height;
        item->channels = (uint16_t)image->channels;
    }
    return bytes_add(&dataset->bytes, encoded ? sample->encoded : image->data, item->size,
                     &item->offset, err);
}

// What may be skipped elsewhere would be missed in a data set.
static int not_skipped(const struct sample *sample, struct error *err) {
    error_context(err, "%s", sample->path);
    if (err)
        err->status = STATUS_DATA;
    return STATUS_DATA;
}

static int read_samples(struct dataset *dataset, struct source *source, struct error *err) {
    struct sample sample = {0};
    bool more = true;
    int status = STATUS_OK;
    uint64_t file_bytes = source_without_files(source);
    while (!status && more) {
        status = source_next(source, &sample, &more, err);
        if (status == STATUS_SKIPPED && source_passes_over(source, &sample, err)) {
            status = STATUS_OK;
            continue;
        }
        if (status == STATUS_SKIPPED)
            status = not_skipped(&sample, err);
        if (!status && more)
            status = dataset_add(dataset, &sample, file_bytes, err);
    }
    sample_free(&sample);
    return status;
}

// Takes the samples of mapped records from their index.
static int take_index(struct dataset *dataset, const struct arec_index *index, struct error *err) {
    for (uint32_t i = 0; i < index->count; i++) {
        const struct arec_position *position = &index->positions[i];
        struct dataset_item *item = item_add(dataset, err);
        if (!item)
            return err->status;
        item->storage = ITEM_IN_MAP;
        item->offset = position->offset;
        item->label = position->label;
        digest_add(dataset, position->key_crc, position->label);
    }
    return STATUS_OK;
}

// The index rebuilt: every record is read, and must be sound.
static int scan_records(struct dataset *dataset, struct source *source, struct error *err) {
    struct sample sample = {0};
    bool more = true;
    int status = STATUS_OK;
    while (!status && more) {
        status = source_next(source, &sample, &more, err);
        if (status == STATUS_SKIPPED)
            status = not_skipped(&sample, err);
        if (status || !more)
            break;
        struct dataset_item *item = item_add(dataset, err);
        if (!item) {
            status = err->status;
            break;
        }
        item->storage = ITEM_IN_MAP;
        item->offset = source_offset(source);
        item->label = sample.label;
        digest_add(dataset, crc32_of(0, sample.key, strlen(sample.key)), sample.label);
    }
    sample_free(&sample);
    return status;
}

static int open_records(struct dataset *dataset, struct source *source, struct classes *classes,
                        const char *path, struct error *err) {
    struct arec_index index;
    bool found;
    struct classes unused = {0}; // names of labels that targets replace
    int status = map_open(&dataset->map, path, err);
    if (!status)
        status = arec_index_read(&index, dataset->map.data, dataset->map.size,
                                 dataset->targets ? &unused : classes, &found, err);
    classes_free(&unused);
    if (status)
        return status;
    status = found ? take_index(dataset, &index, err) : scan_records(dataset, source, err);
    arec_index_free(&index);
    if (!status && !(dataset->checked = mem_zeroed(dataset->count, 1)))
        status = error_nomem(err);
    return status;
}

// Each sample finds its row, and has no label.
static int join_targets(struct dataset *dataset, struct error *err) {
    int status = targets_check_count(dataset->targets, dataset->count, err);
    for (uint32_t i = 0; !status && i < dataset->count; i++) {
        struct dataset_item *item = &dataset->items[i];
        item->label = LABEL_NONE;
        status = targets_find(dataset->targets, dataset_key(dataset, i), i, &item->row, err);
    }
    if (!status)
        digest_targets(dataset);
    return status;
}

static int check_labels(const struct dataset *dataset, struct error *err) {
    for (uint32_t i = 0; i < dataset->count; i++)
        if (dataset->items[i].label == LABEL_NONE)
            return error_set(err, STATUS_DATA, "%s: sample '%s' has no label", dataset->name,
                             dataset_key(dataset, i));
    return STATUS_OK;
}

// Labels of `from` become those of the same names in `to`.
static int map_labels(struct dataset *dataset, const struct classes *from, const struct classes *to,
                      bool labelled, struct error *err) {
    for (uint32_t i = 0; i < dataset->count; i++) {
        int32_t *label = &dataset->items[i].label;
        if (*label == LABEL_NONE)
            continue;
        const char *name = from->names[*label];
        *label = classes_find(to, name);
        if (*label < 0 && labelled)
            return classes_unknown(to, to->count, dataset->name, name, err);
        if (*label < 0)
            *label = LABEL_NONE;
    }
    return STATUS_OK;
}

// What is done when all samples are there.
static int dataset_complete(struct dataset *dataset, const struct classes *classes, bool labelled,
                            const struct classes *names, struct error *err) {
    if (dataset->count == 0)
        return error_set(err, STATUS_DATA, "%s: holds no samples", dataset->name);
    bool targets = dataset->targets;
    int status = targets    ? join_targets(dataset, err)
                 : labelled ? check_labels(dataset, err)
                            : STATUS_OK;
    if (!status)
        status = classes_copy(&dataset->classes, names && !targets ? names : classes, err);
    if (!status && names && !targets)
        status = map_labels(dataset, classes, names, labelled, err);
    return status;
}

static int dataset_make(struct dataset **out, const char *name, struct error *err) {
    struct dataset *dataset = *out = mem_zeroed(1, sizeof *dataset);
    if (dataset && (dataset->name = mem_string(name)))
        return STATUS_OK;
    return error_nomem(err);
}

static int keep_or_close(struct dataset **out, struct dataset *dataset, int status) {
    if (status)
        dataset_close(dataset);
    else
        *out = dataset;
    return status;
}

int dataset_open(struct dataset **out, const char *path, const struct source_options *options,
                 bool labelled, const struct classes *names, struct error *err) {
    struct classes classes = {0};
    struct source *source = NULL;
    struct dataset *dataset;
    struct error unwanted = {0};
    err = err ? err : &unwanted;
    int status = dataset_make(&dataset, path, err);
    if (!status && names && options && options->targets)
        status = classes_copy(&classes, names, err);
    if (!status)
        status = source_open(&source, path, options, &classes, err);
    if (!status)
        dataset->targets = source_take_targets(source);
    if (!status)
        status = source_has_offsets(source) ? open_records(dataset, source, &classes, path, err)
                                            : read_samples(dataset, source, err);
    if (!status)
        status = dataset_complete(dataset, &classes, labelled, names, err);
    source_close(source);
    classes_free(&classes);
    return keep_or_close(out, dataset, status);
}

void dataset_close(struct dataset *dataset) {
    if (!dataset)
        return;
    map_close(&dataset->map);
    classes_free(&dataset->classes);
    targets_close(dataset->targets);
    free((void *)dataset->checked);
    free(dataset->items);
    free(dataset->bytes.data);
    free(dataset->keys.data);
    free(dataset->name);
    free(dataset);
}

void dataset_keep(struct dataset *dataset, const struct dataset_place *places, uint32_t count) {
    dataset->digest = 0;
    for (uint32_t i = 0; i < count; i++) {
        dataset->items[i] = dataset->items[places[i].index];
        digest_add(dataset, places[i].key_crc, dataset->items[i].label);
    }
    dataset->count = count;
    digest_targets(dataset);
}

uint32_t dataset_count(const struct dataset *dataset) {
    return dataset->count;
}

const struct classes *dataset_classes(const struct dataset *dataset) {
    return &dataset->classes;
}

int32_t dataset_label(const struct dataset *dataset, uint32_t index) {
    return dataset->items[index].label;
}

int dataset_target_count(const struct dataset *dataset) {
    return dataset->targets ? targets_width(dataset->targets) : 0;
}

const float *dataset_targets(const struct dataset *dataset, uint32_t index) {
    return dataset->targets ? targets_at(dataset->targets, dataset->items[index].row) : NULL;
}

uint32_t dataset_digest(const struct dataset *dataset) {
    return dataset->digest;
}

// A record is compared with its CRC-32 when it is first asked for. Threads may
// do so at once and come to the same result.
static int map_record(const struct dataset *dataset, uint32_t index, struct arec_record *record,
                      struct error *err) {
    atomic_uchar *checked = &dataset->checked[index];
    bool check = !atomic_load_explicit(checked, memory_order_relaxed);
    int status = arec_index_record(record, dataset->map.data, dataset->map.size,
                                   dataset->items[index].offset, check, err);
    if (status)
        return error_context(err, "%s: record %u", dataset->name, index);
    if (check)
        atomic_store_explicit(checked, 1, memory_order_relaxed);
    return STATUS_OK;
}

const char *dataset_key(const struct dataset *dataset, uint32_t index) {
    const struct dataset_item *item = &dataset->items[index];
    struct arec_record record;
    if (item->storage != ITEM_IN_MAP)
        return (const char *)dataset->keys.data + item->key;
    return map_record(dataset, index, &record, NULL) ? "" : record.key;
}

uint64_t dataset_key_hash(const struct dataset *dataset, uint32_t index) {
    const char *key = dataset_key(dataset, index);
    return hash_bytes(key, strlen(key));
}

static int decode_sample(struct image *image, const void *data, size_t size, const char *key,
                         const struct dataset *dataset, const struct decode_options *options,
                         struct error *err) {
    static const struct decode_options standard;
    int status = image_decode(image, data, size, options ? options : &standard, err);
    return status ? error_context(err, "%s: %s", dataset->name, key) : STATUS_OK;
}

static int map_image(const struct dataset *dataset, uint32_t index,
                     const struct decode_options *options, struct image *image, struct error *err) {
    struct arec_record record;
    int status = map_record(dataset, index, &record, err);
    if (status)
        return status;
    if (arec_is_encoded(record.encoding))
        return decode_sample(image, record.data, record.size, record.key, dataset, options, err);
    return arec_record_image(image, &record, err);
}

static int file_image(const struct dataset *dataset, const struct dataset_item *item,
                      const struct decode_options *options, struct image *image,
                      struct error *err) {
    struct sample sample = {.path = (char *)dataset->bytes.data + item->offset};
    const struct source_options file = {.max_bytes = item->size};
    int status = source_file(&sample, &file, err);
    if (status) {
        status = not_skipped(&sample, err);
    } else {
        status = decode_sample(image, sample.encoded, sample.encoded_size, sample.path, dataset,
                               options, err);
    }
    sample.path = NULL;
    sample_free(&sample);
    return status;
}

int dataset_image(const struct dataset *dataset, uint32_t index,
                  const struct decode_options *options, struct image *image, struct error *err) {
    const struct dataset_item *item = &dataset->items[index];
    if (item->storage == ITEM_IN_MAP)
        return map_image(dataset, index, options, image, err);
    if (item->storage == ITEM_IN_FILE)
        return file_image(dataset, item, options, image, err);
    const uint8_t *data = dataset->bytes.data + item->offset;
    if (item->width == 0)
        return decode_sample(image, data, item->size, dataset_key(dataset, index), dataset, options,
                             err);
    int status = image_shape(image, item->width, item->height, item->channels, item->type, err);
    if (!status)
        memcpy(image->data, data, item->size);
    return status;
}
