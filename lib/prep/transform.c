#include "prep/transform.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"

int transform_scratch_init(struct transform_scratch *scratch, struct error *err) {
    *scratch = (struct transform_scratch){.ops = ops_scratch_new()};
    return scratch->ops ? STATUS_OK : error_nomem(err);
}

void transform_scratch_free(struct transform_scratch *scratch) {
    if (scratch->ops)
        ops_scratch_free(scratch->ops);
    image_free(&scratch->image);
    *scratch = (struct transform_scratch){0};
}

static bool stays_encoded(const struct transform *t, const struct ops *chain,
                          const struct sample *in) {
    return !chain && in->encoded_size && !t->decode.channels &&
           t->keeps[codec_of(in->encoded, in->encoded_size)];
}

int transform_input(const struct transform *transform, struct transform_scratch *scratch,
                    const struct ops *chain, struct sample *in, struct error *err) {
    struct decode_options options = transform->decode;
    if (stays_encoded(transform, chain, in)) {
        options.least_width = options.least_height = 1; // enough to see that it is whole
        return image_decode(&scratch->image, in->encoded, in->encoded_size, &options, err);
    }
    if (in->encoded_size) {
        if (chain)
            ops_decode_hint(chain, &options);
        int status = image_decode(&in->image, in->encoded, in->encoded_size, &options, err);
        if (status)
            return status;
        in->encoded_size = 0;
    }
    return image_channels(&in->image, transform->decode.channels, err);
}

static int copy_encoded(struct sample *in, bool last, struct sample *out, struct error *err) {
    if (last) {
        struct sample swapped = *out;
        out->encoded = in->encoded, out->encoded_capacity = in->encoded_capacity;
        in->encoded = swapped.encoded, in->encoded_capacity = swapped.encoded_capacity;
    } else {
        int status = sample_reserve(out, in->encoded_size, err);
        if (status)
            return status;
        memcpy(out->encoded, in->encoded, in->encoded_size);
    }
    out->encoded_size = in->encoded_size;
    return STATUS_OK;
}

static int encode_picture(const struct transform *t, struct sample *out, struct error *err) {
    void *data;
    size_t size;
    int status = image_encode(&data, &size, &out->image, t->codec, t->quality, err);
    if (status)
        return status;
    free(out->encoded);
    out->encoded = data;
    out->encoded_size = out->encoded_capacity = size;
    return STATUS_OK;
}

int transform_copy(const struct transform *transform, struct transform_scratch *scratch,
                   const struct ops *chain, struct sample *in, uint64_t copy, bool last,
                   struct sample *out, bool *fatal, struct error *err) {
    *fatal = false;
    out->encoded_size = 0;
    if (in->encoded_size)
        return copy_encoded(in, last, out, err);
    int status = STATUS_OK;
    if (last)
        image_swap(&out->image, &in->image);
    else
        status = image_copy(&out->image, &in->image, err);
    struct ops_draw draw = {transform->seed, copy, hash_bytes(in->key, strlen(in->key))};
    if (!status && chain)
        status = ops_apply(chain, scratch->ops, &out->image, draw, err);
    if (status || transform->codec == CODEC_NONE)
        return status;
    status = encode_picture(transform, out, err);
    *fatal = status != STATUS_OK;
    return status;
}
