// Some operations of a fixed list, each as likely as the others, all of one strength: "RandAugment:
// Practical automated data augmentation with a reduced search space" (Cubuk et al. 2019), figure 2.
// They are those of the table. Here is only what a strength is as their parameter, and that as
// torchvision has it.
#include <math.h>

#include "core/error.h"
#include "ops/op.h"

static const double DEGREE = 180 / 3.14159265358979323846;

// What a strength is as a parameter. `amount` is the most of it times the strength's share of 30.
enum effect {
    EFFECT_NONE,      // the operation has no parameter
    EFFECT_SIGNED,    // amount or -amount
    EFFECT_SLANT,     // the angle whose tangent that is
    EFFECT_FACTOR,    // 1 + amount or 1 - amount
    EFFECT_WIDTH,     // amount of the width to the right or left, in whole pixels
    EFFECT_HEIGHT,    // amount of the height down or up
    EFFECT_THRESHOLD, // 1 - amount
    EFFECT_BITS,      // 8 - amount, a whole number
};

static const struct choice {
    const struct op_code *code; // NULL: the picture stays as it is
    enum effect effect;
    double most;
    int parameter;
    int border; // the place of the parameter border=, before fill=; 0: there is none
} choices[] = {
    {.code = NULL},
    {.code = &op_autocontrast},
    {.code = &op_equalize},
    {&op_rotate, EFFECT_SIGNED, 30, ROTATE_ANGLE, ROTATE_BORDER},
    {&op_solarize, EFFECT_THRESHOLD, 1, 0, 0},
    {&op_saturation, EFFECT_FACTOR, 0.9, 0, 0},
    {&op_posterize, EFFECT_BITS, 4, 0, 0},
    {&op_contrast, EFFECT_FACTOR, 0.9, 0, 0},
    {&op_brightness, EFFECT_FACTOR, 0.9, 0, 0},
    {&op_sharpness, EFFECT_FACTOR, 0.9, 0, 0},
    {&op_shear, EFFECT_SLANT, 0.3, SHEAR_X, SHEAR_BORDER},
    {&op_shear, EFFECT_SLANT, 0.3, SHEAR_Y, SHEAR_BORDER},
    {&op_translate, EFFECT_WIDTH, 150.0 / 331, TRANSLATE_X, TRANSLATE_BORDER},
    {&op_translate, EFFECT_HEIGHT, 150.0 / 331, TRANSLATE_Y, TRANSLATE_BORDER},
};

static double parameter_of(const struct choice *choice, double share, const struct canvas *canvas,
                           struct random *random) {
    double amount = choice->most * share;
    double either = random_u32(random) & 1 ? amount : -amount;
    switch (choice->effect) {
    case EFFECT_NONE:
        break;
    case EFFECT_SIGNED:
        return either;
    case EFFECT_SLANT:
        return atan(either) * DEGREE;
    case EFFECT_FACTOR:
        return 1 + either;
    case EFFECT_WIDTH:
        return rint(either * canvas_width(canvas));
    case EFFECT_HEIGHT:
        return rint(either * canvas_height(canvas));
    case EFFECT_THRESHOLD:
        return 1 - amount;
    case EFFECT_BITS:
        return 8 - rint(amount);
    }
    return 0;
}

static int apply_choice(const struct op *op, const struct choice *choice, double share,
                        struct canvas *canvas, struct random *random, struct error *err) {
    struct op chosen = {.info = op->info, .probability = 1};
    double parameter = parameter_of(choice, share, canvas, random);
    if (!choice->code)
        return STATUS_OK;
    if (choice->border) {
        chosen.values[choice->border] = op->values[RANDAUGMENT_BORDER];
        chosen.values[choice->border + 1] = op->values[RANDAUGMENT_FILL];
    }
    chosen.values[choice->parameter].given = true;
    chosen.values[choice->parameter].low = chosen.values[choice->parameter].high = parameter;
    return choice->code->apply(&chosen, canvas, random, err);
}

static int randaugment_apply(const struct op *op, struct canvas *canvas, struct random *random,
                             struct error *err) {
    double share = op_draw(&op->values[RANDAUGMENT_STRENGTH], random) / RANDAUGMENT_MOST;
    int status = canvas_needs_bytes(canvas, op, err);
    for (int i = 0; !status && i < (int)op->values[RANDAUGMENT_COUNT].low; i++) {
        uint32_t drawn = random_below(random, sizeof choices / sizeof *choices);
        status = apply_choice(op, &choices[drawn], share, canvas, random, err);
    }
    return status;
}

const struct op_code op_randaugment = {.apply = randaugment_apply, .draws = true};
