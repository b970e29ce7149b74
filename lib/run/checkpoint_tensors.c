#include "run/checkpoint_tensors.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/mem.h"

static int add_tensor(struct place *places, size_t *count, const char *prefix,
                      const struct layer *layer, const char *what,
                      const struct parameter *parameter, struct error *err) {
    struct place *place = &places[*count];
    if (parameter->count == 0)
        return STATUS_OK;
    place->parameter = parameter;
    if (asprintf(&place->name, "%s%s%s.%s", prefix ? prefix : "", prefix ? "." : "", layer->name,
                 what) < 0) {
        place->name = NULL;
        return error_nomem(err);
    }
    ++*count;
    return STATUS_OK;
}

int places_of(struct place **out, size_t *count, const struct model *model, const char *prefix,
              struct error *err) {
    struct place *places = mem_zeroed(2 * (size_t)model->layer_count, sizeof *places);
    int status = places ? STATUS_OK : error_nomem(err);
    *count = 0;
    for (int i = 0; !status && i < model->layer_count; i++) {
        const struct layer *layer = &model->layers[i];
        status = add_tensor(places, count, prefix, layer, "weight", &layer->weights, err);
        if (!status)
            status = add_tensor(places, count, prefix, layer, "bias", &layer->biases, err);
    }
    *out = places;
    if (status)
        places_free(places, *count);
    return status;
}

void places_free(struct place *places, size_t count) {
    for (size_t i = 0; places && i < count; i++)
        free(places[i].name);
    free(places);
}
