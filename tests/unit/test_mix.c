// Samples of a mini-batch that are mixed in pairs: which, by how much, and what their labels are.
#include <math.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/random.h"
#include "train/mix.h"

enum { C = 2, H = 12, W = 20, SIZE = C * H * W, BATCH = 9, PAIRS = 6000, TARGETS = 2 };

struct scene {
    float input[BATCH * SIZE];
    int32_t label[BATCH], other[BATCH];
    float share[BATCH], target[BATCH * TARGETS];
    uint64_t draw[BATCH];
    struct batch batch;
};

// Every value says of which sample it is, and from where.
static float value_of(int sample, int place) {
    return (float)(1000 * sample + place);
}

static void open_scene(struct scene *s, int n, uint64_t draw) {
    for (int i = 0; i < n; i++) {
        s->label[i] = i % 5;
        s->draw[i] = hash_mix(draw, (uint64_t)i);
        for (int k = 0; k < SIZE; k++)
            s->input[i * SIZE + k] = value_of(i, k);
    }
    s->batch = (struct batch){.input = s->input, .label = s->label, .draw = s->draw, .n = n};
}

static void mix_scene(struct scene *s, const struct mix *mix, int n, uint64_t draw) {
    open_scene(s, n, draw);
    mix_batch(mix, &s->batch, s->other, s->share);
}

static struct mix mix_by(double mixup, double cutmix) {
    return (struct mix){
        .mixup = mixup, .cutmix = cutmix, .shape = {C, H, W}, .outputs = TARGETS, .seed = 3};
}

static void test_mixup(struct tap *tap) {
    static struct scene s;
    struct mix mix = mix_by(0.7, 0);
    TEST(tap, "mixup makes of each sample and label a share, and the rest of its pair's", {
        mix_scene(&s, &mix, BATCH, 1);
        CHECK(tap, s.batch.other == s.other && s.batch.share == s.share);
        for (int i = 0; i < BATCH; i++) {
            int j = BATCH - 1 - i;
            float share = s.share[i];
            CHECK(tap, i == j ? share == 1 : share > 0 && share < 1 && share == s.share[j]);
            CHECK_INT(tap, s.label[i], i % 5);
            CHECK_INT(tap, s.other[i], j % 5);
            for (int k = 0; k < SIZE; k++)
                CHECK_NEAR(tap, s.input[i * SIZE + k],
                           share * value_of(i, k) + (1 - share) * value_of(j, k), 0.01);
        }
        CHECK(tap, s.share[0] != s.share[1]);
    });
    TEST(tap, "a pair of which one has no label stays as it is", {
        open_scene(&s, 4, 1);
        s.label[3] = -1;
        mix_batch(&mix, &s.batch, s.other, s.share);
        CHECK(tap, s.share[0] == 1 && s.share[3] == 1 && s.share[1] < 1);
        for (int k = 0; k < SIZE; k++)
            CHECK(tap, s.input[k] == value_of(0, k) && s.input[3 * SIZE + k] == value_of(3, k));
    });
    TEST(tap, "targets are mixed as their samples are, by either way", {
        for (int way = 0; way < 2; way++) {
            const struct mix by = way ? mix_by(0, 1) : mix;
            open_scene(&s, BATCH, 1);
            for (int i = 0; i < BATCH * TARGETS; i++)
                s.target[i] = (float)i;
            for (int i = 0; i < BATCH; i++)
                s.label[i] = -1;
            s.batch.target = s.target;
            mix_batch(&by, &s.batch, s.other, s.share);
            CHECK(tap, s.share[0] < 1);
            for (int i = 0; i < BATCH * TARGETS; i++) {
                int mine = i / TARGETS, other = BATCH - 1 - mine;
                float theirs = (float)(other * TARGETS + i % TARGETS);
                CHECK_NEAR(tap, s.target[i],
                           s.share[mine] * (float)i + (1 - s.share[mine]) * theirs, 1e-5);
            }
        }
    });
    TEST(tap, "what a pair draws hangs on the seed and its two samples alone", {
        static struct scene same, others;
        mix_scene(&s, &mix, BATCH, 1);
        mix_scene(&same, &mix, BATCH, 1);
        CHECK(tap, memcmp(s.input, same.input, sizeof s.input) == 0);
        open_scene(&others, BATCH, 2);
        others.draw[1] = s.draw[1], others.draw[BATCH - 2] = s.draw[BATCH - 2];
        mix_batch(&mix, &others.batch, others.other, others.share);
        CHECK(tap, others.share[1] == s.share[1] && others.share[0] != s.share[0]);
        mix.seed++;
        mix_scene(&same, &mix, BATCH, 1);
        CHECK(tap, same.share[1] != s.share[1]);
    });
}

// The distribution of Beta(alpha, alpha): mean 1/2, variance 1 / (4 (2 alpha + 1)), and of 1 also
// its thirds.
static void test_shares(struct tap *tap) {
    static const double alphas[] = {0.01, 0.2, 1, 4, 100};
    static struct scene s;
    TEST(tap, "shares are of Beta(alpha, alpha)", {
        for (int a = 0; a < 5; a++) {
            struct mix mix = mix_by(alphas[a], 0);
            double mean = 0, squares = 0, third = 0;
            mix.shape = (struct shape){1, 1, 1};
            for (int k = 0; k < PAIRS; k++) {
                mix_scene(&s, &mix, 2, (uint64_t)k);
                double share = (double)s.share[0];
                CHECK(tap, share >= 0 && share <= 1);
                mean += share / PAIRS;
                squares += (share - 0.5) * (share - 0.5) / PAIRS;
                third += (share < 1.0 / 3) / (double)PAIRS;
            }
            double variance = 1 / (4 * (2 * alphas[a] + 1));
            CHECK_NEAR(tap, mean, 0.5, 5 * sqrt(variance / PAIRS));
            CHECK_NEAR(tap, squares / variance, 1, 0.07);
            if (alphas[a] == 1)
                CHECK_NEAR(tap, third, 1.0 / 3, 0.03);
        }
    });
}

// Of sample i, the rectangle that came from its pair; the rest must be its own.
struct rectangle {
    int left, top, right, bottom;
};

static struct rectangle foreign_part(struct tap *tap, const struct scene *s, int i) {
    struct rectangle r = {W, H, 0, 0};
    int j = s->batch.n - 1 - i, count = 0;
    for (int k = 0; k < SIZE; k++) {
        float value = s->input[i * SIZE + k];
        int x = k % W, y = k / W % H;
        if (value != value_of(i, k) && value != value_of(j, k))
            FAIL(tap, "a value of none of the two");
        if (value == value_of(i, k))
            continue;
        r.left = x < r.left ? x : r.left, r.right = x >= r.right ? x + 1 : r.right;
        r.top = y < r.top ? y : r.top, r.bottom = y >= r.bottom ? y + 1 : r.bottom;
        count++;
    }
    if (count && count != C * (r.right - r.left) * (r.bottom - r.top))
        FAIL(tap, "%d values make no rectangle", count);
    return r;
}

static void test_cutmix(struct tap *tap) {
    static struct scene s;
    struct mix mix = mix_by(0, 1);
    TEST(tap, "cutmix exchanges a rectangle, and labels by its share of the area", {
        int touching = 0, inside = 0;
        double mean = 0;
        for (int k = 0; k < PAIRS; k++) {
            mix_scene(&s, &mix, 2, (uint64_t)k);
            struct rectangle r = foreign_part(tap, &s, 0), q = foreign_part(tap, &s, 1);
            CHECK(tap, memcmp(&r, &q, sizeof r) == 0);
            int w = r.right > r.left ? r.right - r.left : 0,
                h = r.bottom > r.top ? r.bottom - r.top : 0;
            CHECK_NEAR(tap, s.share[0], 1 - (double)(w * h) / (W * H), 1e-6);
            CHECK(tap, s.share[0] == s.share[1] && s.other[0] == 1 && s.other[1] == 0);
            touching += w && (r.left == 0 || r.right == W);
            inside += w && r.left > 0 && r.right < W && r.top > 0 && r.bottom < H;
            // Sides are in proportion to those of the picture, but for whole pixels.
            if (w && r.left > 0 && r.right < W && r.top > 0 && r.bottom < H)
                CHECK(tap, abs(w * H - h * W) <= 2 * (W + H));
            mean += (double)s.share[0] / PAIRS;
        }
        CHECK(tap, touching > PAIRS / 5 && inside > PAIRS / 10);
        // Where nothing is cut off, a share of Beta(1, 1) has a mean of a half; numpy's mean of the
        // same rectangles on this picture is 0.727.
        CHECK_NEAR(tap, mean, 0.727, 0.015);
    });
    TEST(tap, "with both, each way is as likely", {
        int cut = 0;
        mix = mix_by(1, 1);
        for (int k = 0; k < PAIRS; k++) {
            mix_scene(&s, &mix, 2, (uint64_t)k);
            cut += s.input[0] == value_of(0, 0) || s.input[0] == value_of(1, 0);
        }
        CHECK_NEAR(tap, cut, PAIRS / 2.0, 2.5 * sqrt(PAIRS));
    });
}

int main(void) {
    struct tap tap = {0};
    test_mixup(&tap);
    test_shares(&tap);
    test_cutmix(&tap);
    return tap_done(&tap);
}
