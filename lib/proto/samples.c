#include "proto/samples.h"

size_t proto_samples_bytes(uint32_t n, uint32_t target_count, size_t value_bytes) {
    return n * (PROTO_SAMPLE_HEAD + target_count * sizeof(float) + value_bytes);
}

struct proto_samples proto_samples_in(void *payload, uint32_t n, uint32_t target_count,
                                      size_t value_bytes) {
    struct proto_samples samples = {
        .keys = payload, .count = n, .target_count = target_count, .value_bytes = value_bytes};
    samples.labels = (int32_t *)(samples.keys + n);
    samples.targets = (float *)(samples.labels + n);
    samples.values = (char *)(samples.targets + (size_t)n * target_count);
    return samples;
}

struct proto_samples proto_samples_part(const struct proto_samples *samples, uint32_t first,
                                        uint32_t n) {
    return (struct proto_samples){
        .keys = samples->keys + first,
        .labels = samples->labels + first,
        .targets = samples->targets + (size_t)first * samples->target_count,
        .values = proto_sample_values(samples, first),
        .count = n,
        .target_count = samples->target_count,
        .value_bytes = samples->value_bytes,
    };
}

void *proto_sample_values(const struct proto_samples *samples, uint32_t i) {
    return samples->values + i * samples->value_bytes;
}
