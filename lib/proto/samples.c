#include "proto/samples.h"

size_t proto_samples_bytes(uint32_t n, size_t value_bytes) {
    return n * (PROTO_SAMPLE_HEAD + value_bytes);
}

struct proto_samples proto_samples_in(void *payload, uint32_t n, size_t value_bytes) {
    struct proto_samples samples = {.keys = payload, .count = n, .value_bytes = value_bytes};
    samples.labels = (int32_t *)(samples.keys + n);
    samples.values = (char *)(samples.labels + n);
    return samples;
}

struct proto_samples proto_samples_part(const struct proto_samples *samples, uint32_t first,
                                        uint32_t n) {
    return (struct proto_samples){
        .keys = samples->keys + first,
        .labels = samples->labels + first,
        .values = proto_sample_values(samples, first),
        .count = n,
        .value_bytes = samples->value_bytes,
    };
}

void *proto_sample_values(const struct proto_samples *samples, uint32_t i) {
    return samples->values + i * samples->value_bytes;
}
