#include "core/random.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/cpu.h"
#include "core/random_rows.h"

static uint64_t splitmix_finalize(uint64_t x) { // the finalizer of SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t hash_mix(uint64_t hash, uint64_t value) {
    return splitmix_finalize(hash + 0x9e3779b97f4a7c15u + splitmix_finalize(value));
}

uint64_t hash_bytes(const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a, then mixed: its high bits alone are weak
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash_mix(hash, size);
}

struct random random_stream(uint64_t seed, uint64_t a, uint64_t b) {
    uint64_t place = hash_mix(a, b);
    return (struct random){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, 0, (uint32_t)place, (uint32_t)(place >> 32)},
        .used = 4,
    };
}

static void philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * x0, p1 = (uint64_t)0xCD9E8D57u * x2;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1, x3 = (uint32_t)p0, x0 = y0, x2 = y2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    out[0] = x0, out[1] = x1, out[2] = x2, out[3] = x3;
}

uint32_t random_u32(struct random *r) {
    if (r->used == 4) {
        philox(r->key, r->counter, r->block);
        r->used = 0;
        if (++r->counter[0] == 0)
            r->counter[1]++;
    }
    return r->block[r->used++];
}

static const struct random_rows *rows_of_this_cpu(void) {
#if defined(__x86_64__)
    if (cpu_level() >= CPU_AVX2)
        return &random_rows_avx2;
#endif
    return &random_rows_ref;
}

void random_words(struct random *r, uint32_t *words, size_t n) {
    for (; n && r->used < 4; n--)
        *words++ = random_u32(r);
    size_t groups = n / RANDOM_GROUP, before_wrap = (UINT32_MAX - r->counter[0]) / RANDOM_GROUP;
    groups = groups < before_wrap ? groups : before_wrap;
    if (groups) {
        rows_of_this_cpu()->words(words, groups, r->key, r->counter);
        r->counter[0] += (uint32_t)groups * RANDOM_GROUP / 4;
        words += groups * RANDOM_GROUP;
        n -= groups * RANDOM_GROUP;
    }
    for (; n; n--)
        *words++ = random_u32(r);
}

void random_skip(struct random *r, uint64_t n) {
    uint64_t left = 4 - r->used;
    if (n < left) {
        r->used += (unsigned)n;
        return;
    }
    n -= left;
    uint64_t counter = ((uint64_t)r->counter[1] << 32 | r->counter[0]) + n / 4;
    r->counter[0] = (uint32_t)counter;
    r->counter[1] = (uint32_t)(counter >> 32);
    r->used = 4;
    for (n %= 4; n > 0; n--)
        random_u32(r);
}

void random_normals(struct random *r, float *normals, size_t n) {
    const struct random_rows *rows = rows_of_this_cpu();
    uint32_t words[RANDOM_NORMALS];
    float last[RANDOM_NORMALS];
    for (size_t i = 0; i < n; i += RANDOM_NORMALS) {
        bool whole = n - i >= RANDOM_NORMALS;
        random_words(r, words, RANDOM_NORMALS);
        rows->normals(whole ? normals + i : last, words);
        if (!whole)
            memcpy(normals + i, last, (n - i) * sizeof *last);
    }
}

uint32_t random_below(struct random *r, uint32_t n) {
    uint32_t reject = -n % n; // Lemire 2019: multiply, and draw again in the biased strip
    for (;;) {
        uint64_t product = (uint64_t)random_u32(r) * n;
        if ((uint32_t)product >= reject)
            return (uint32_t)(product >> 32);
    }
}

float random_unit(struct random *r) {
    return (float)(random_u32(r) >> 8) * 0x1p-24f;
}

float random_range(struct random *r, float low, float high) {
    return low + (high - low) * random_unit(r);
}

float random_normal(struct random *r) {
    float u = 1.0f - random_unit(r), v = random_unit(r);
    return sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
}
