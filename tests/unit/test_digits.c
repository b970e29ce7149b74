// Drawn digits: a pure function, each class told apart, every style used.
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/random.h"
#include "prep/digits.h"

static uint64_t hash_of(uint64_t seed, uint64_t index, int size) {
    struct image image = {0};
    struct error err = {0};
    uint64_t hash = 0;
    if (digits_draw(&image, size, seed, index, &err) == STATUS_OK)
        hash = hash_bytes(image.u8, image_bytes(&image));
    image_free(&image);
    return hash;
}

static void test_purity(struct tap *tap) {
    TEST(tap, "the same seed and index give the same picture, in any order", {
        uint64_t forth[50];
        for (int i = 0; i < 50; i++)
            forth[i] = hash_of(3, (uint64_t)i, 28);
        for (int i = 49; i >= 0; i--)
            CHECK(tap, hash_of(3, (uint64_t)i, 28) == forth[i]);
        for (int i = 1; i < 50; i++)
            CHECK(tap, forth[i] != forth[i - 1] && forth[i] != hash_of(4, (uint64_t)i, 28));
    });
    TEST(tap, "an image that is used again shows nothing of the one before", {
        struct image image = {0};
        struct error err = {0};
        CHECK_INT(tap, digits_draw(&image, 100, 1, 8, &err), STATUS_OK);
        CHECK_INT(tap, digits_draw(&image, 28, 3, 7, &err), STATUS_OK);
        CHECK(tap, hash_bytes(image.u8, image_bytes(&image)) == hash_of(3, 7, 28));
        CHECK_INT(tap, image.channels, 1);
        CHECK_INT(tap, image.width, 28);
        image_free(&image);
    });
    TEST(tap, "sizes out of bounds are refused", {
        struct image image = {0};
        struct error err = {0};
        CHECK_INT(tap, digits_draw(&image, 0, 1, 1, &err), STATUS_DATA);
        CHECK_INT(tap, digits_draw(&image, 1 << 20, 1, 1, &err), STATUS_DATA);
        image_free(&image);
    });
}

// Mean picture of each digit over `count` drawings, 28x28.
static void mean_pictures(double mean[DIGITS_CLASSES][784], uint64_t first, int count) {
    struct image image = {0};
    for (int i = 0; i < count; i++) {
        uint64_t index = first + (uint64_t)i;
        if (digits_draw(&image, 28, 1, index, NULL))
            break;
        for (int k = 0; k < 784; k++)
            mean[digits_label(index)][k] += image.u8[k] / (25.5 * count);
    }
    image_free(&image);
}

// How many of `count` pictures are nearest to the mean of their own class.
static int nearest_is_right(double mean[DIGITS_CLASSES][784], uint64_t first, int count) {
    struct image image = {0};
    int right = 0;
    for (int i = 0; i < count; i++) {
        uint64_t index = first + (uint64_t)i;
        double best = 1e30;
        int found = -1;
        digits_draw(&image, 28, 1, index, NULL);
        for (int c = 0; c < DIGITS_CLASSES; c++) {
            double distance = 0;
            for (int k = 0; k < 784; k++) {
                double d = image.u8[k] / 255.0 - mean[c][k];
                distance += d * d;
            }
            if (distance < best)
                best = distance, found = c;
        }
        right += found == digits_label(index);
    }
    image_free(&image);
    return right;
}

static void test_learnable(struct tap *tap) {
    TEST(tap, "the nearest class mean is right more often than chance, and far from always", {
        static double mean[DIGITS_CLASSES][784];
        mean_pictures(mean, 0, 2000);
        int right = nearest_is_right(mean, 2000, 1000);
        printf("# nearest mean: %d of 1000\n", right);
        CHECK(tap, right > 500 && right < 950);
    });
    TEST(tap, "a picture has ink in the middle, and a dark rim", {
        static double mean[DIGITS_CLASSES][784];
        mean_pictures(mean, 0, 1000);
        for (int c = 0; c < DIGITS_CLASSES; c++) {
            double rim = 0;
            double all = 0;
            for (int k = 0; k < 784; k++) {
                all += mean[c][k] / 784;
                if (k < 28 || k >= 756)
                    rim += mean[c][k] / 56;
            }
            CHECK(tap, rim < 0.12 && all > rim + 0.04);
        }
    });
}

int main(void) {
    struct tap tap = {0};
    test_purity(&tap);
    test_learnable(&tap);
    return tap_done(&tap);
}
