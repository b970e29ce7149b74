#include "image/elastic.h"

#include "image/gauss.h"

size_t elastic_room(int width, int height, double sigma) {
    return gauss_room(width, height, 1, sigma);
}

// n numbers between -alpha and alpha, as 2 random_unit - 1 gives them.
static void fill_uniform(float *to, size_t n, float alpha, struct random *random) {
    uint32_t words[256];
    for (size_t i = 0; i < n; i += 256) {
        size_t m = n - i < 256 ? n - i : 256;
        random_words(random, words, m);
        for (size_t j = 0; j < m; j++)
            to[i + j] = alpha * ((float)(int32_t)(words[j] >> 8) * 0x1p-23f - 1);
    }
}

void elastic_fields(float *dx, float *dy, float *room, int width, int height, double sigma,
                    double alpha, struct random *random) {
    float *fields[] = {dx, dy};
    size_t n = (size_t)width * (size_t)height;
    for (int i = 0; i < 2; i++) {
        fill_uniform(fields[i], n, (float)alpha, random);
        gauss_smooth(fields[i], room, width, height, 1, sigma);
    }
}
