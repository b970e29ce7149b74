#include "data/holdout.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/mem.h"
#include "sample/strata.h"
#include "store/crc.h"

// What the source says of each sample, in order.
struct survey {
    struct strata strata;
    struct surveyed {
        char *origin;
        int32_t label;
        uint32_t key_crc;
    } * items;
    uint32_t count, capacity;
};

static void survey_free(struct survey *survey) {
    for (uint32_t i = 0; i < survey->count; i++)
        free(survey->items[i].origin);
    free(survey->items);
    strata_free(&survey->strata);
}

static int survey_add(struct survey *survey, const struct sample *sample, struct error *err) {
    if (survey->count == survey->capacity) {
        uint32_t capacity = survey->count < UINT32_MAX / 2 ? 2 * survey->count : UINT32_MAX;
        capacity = capacity ? capacity : 1024;
        struct surveyed *items = mem_resize(survey->items, capacity, sizeof *items);
        if (!items || capacity == survey->count)
            return error_nomem(err);
        survey->items = items;
        survey->capacity = capacity;
    }
    struct surveyed *item = &survey->items[survey->count];
    *item = (struct surveyed){mem_string(sample_origin(sample)), sample->label,
                              crc32_of(0, sample->key, strlen(sample->key))};
    if (!item->origin)
        return error_nomem(err);
    survey->count++;
    return strata_add(&survey->strata, item->origin, item->label, err);
}

// What cannot be read dataset_open tells of.
static int survey_source(struct survey *survey, struct source *source, struct error *err) {
    struct sample sample = {0};
    bool more = true;
    int status = STATUS_OK;
    source_without_files(source);
    while (!status && more) {
        status = source_next(source, &sample, &more, err);
        if (status == STATUS_SKIPPED)
            status = STATUS_OK;
        else if (!status && more)
            status = survey_add(survey, &sample, err);
    }
    sample_free(&sample);
    return status;
}

static int survey_path(struct survey *survey, const char *path,
                       const struct source_options *options, double share, struct error *err) {
    const struct split split = {2, {{"train", 1 - share}, {"test", share}}};
    const struct source_options quiet = {.from = options->from,
                                         .labels = options->labels,
                                         .label_from = options->targets ? LABEL_NO : LABEL_DEFAULT};
    struct classes classes = {0};
    struct source *source = NULL;
    int status = source_open(&source, path, &quiet, &classes, err);
    if (!status)
        status = survey_source(survey, source, err);
    if (!status)
        status = strata_decide(&survey->strata, &split, err);
    source_close(source);
    classes_free(&classes);
    return status;
}

// Of the samples only those of one part.
static int keep_part(struct dataset *dataset, const struct survey *survey, int part,
                     const char *path, double share, struct error *err) {
    if (dataset_count(dataset) != survey->count)
        return error_set(err, STATUS_DATA, "%s changes while it is read", path);
    struct dataset_place *places = mem_array(survey->count, sizeof *places);
    uint32_t count = 0;
    if (!places)
        return error_nomem(err);
    for (uint32_t i = 0; i < survey->count; i++) {
        const struct surveyed *item = &survey->items[i];
        if (strata_part(&survey->strata, item->origin, item->label) == part)
            places[count++] = (struct dataset_place){i, item->key_crc};
    }
    dataset_keep(dataset, places, count);
    free(places);
    return count > 0 ? STATUS_OK
                     : error_set(err, STATUS_DATA,
                                 "%s has %u samples: none is left %s where a share of %g is held "
                                 "out for tests",
                                 path, survey->count, part ? "for tests" : "to train on", share);
}

int holdout_open(struct dataset **train, struct dataset **test, const char *path,
                 const struct source_options *options, double share, const struct classes *names,
                 struct error *err) {
    struct survey survey = {.count = 0};
    struct dataset *halves[2] = {NULL, NULL};
    int status = survey_path(&survey, path, options, share, err);
    for (int part = 0; !status && part < 2; part++) {
        status = dataset_open(&halves[part], path, options, true, names, err);
        if (!status)
            status = keep_part(halves[part], &survey, part, path, share, err);
    }
    survey_free(&survey);
    if (status) {
        dataset_close(halves[0]);
        dataset_close(halves[1]);
        return status;
    }
    *train = halves[0];
    *test = halves[1];
    return STATUS_OK;
}
