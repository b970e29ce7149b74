// The payload of a `batch` (messages.h): n samples of T targets, or none, and of V bytes of values
// each, as four arrays without gaps.
//
//   offset  length  content
//        0     8 n  keys: the hash of each sample's key (64 bits)
//      8 n     4 n  labels (32 bits); -1 of samples that have targets
//     12 n   4 T n  targets (32-bit floats); the length of the payload tells how many
//  12 n+4Tn    V n  values: height x width x channels of each picture, in bytes or 32-bit floats
//                   as `data` says
//
// All numbers are little-endian.
#ifndef ADAM_PROTO_SAMPLES_H
#define ADAM_PROTO_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

// Bytes of a sample beside its values.
enum { PROTO_SAMPLE_HEAD = sizeof(uint64_t) + sizeof(int32_t) };

// The arrays of a payload. It points into the payload, whose owner must keep it.
struct proto_samples {
    uint64_t *keys;
    int32_t *labels;
    float *targets;
    char *values;
    uint32_t count, target_count; // samples, and T
    size_t value_bytes;           // V
};

// Bytes of a payload of n samples. The caller has checked that they fit a payload.
size_t proto_samples_bytes(uint32_t n, uint32_t target_count, size_t value_bytes);
// `payload` has so many bytes, and the alignment of a uint64_t.
struct proto_samples proto_samples_in(void *payload, uint32_t n, uint32_t target_count,
                                      size_t value_bytes);
// Samples [first, first + n) of these.
struct proto_samples proto_samples_part(const struct proto_samples *samples, uint32_t first,
                                        uint32_t n);
// The values of sample i.
void *proto_sample_values(const struct proto_samples *samples, uint32_t i);

#endif
