// The table of all types of layers.
#include <string.h>

#include "model/keys.h"

extern const struct layer_type layer_input, layer_conv, layer_local, layer_maxpool, layer_avgpool,
    layer_l2pool, layer_lrn, layer_lcn, layer_batchnorm, layer_groupnorm, layer_layernorm,
    layer_dropout, layer_relu, layer_tanh, layer_sigmoid, layer_linear, layer_leaky, layer_elu,
    layer_softplus, layer_relu6, layer_gelu, layer_silu, layer_hardswish, layer_concat, layer_add,
    layer_softmax, layer_logistic, layer_linear_output;

const struct layer_type *const *layer_types(size_t *count) {
    static const struct layer_type *const types[] = {
        &layer_input,     &layer_conv,    &layer_local,    &layer_maxpool,       &layer_avgpool,
        &layer_l2pool,    &layer_lrn,     &layer_lcn,      &layer_batchnorm,     &layer_groupnorm,
        &layer_layernorm, &layer_dense,   &layer_dropout,  &layer_relu,          &layer_tanh,
        &layer_sigmoid,   &layer_linear,  &layer_leaky,    &layer_elu,           &layer_softplus,
        &layer_relu6,     &layer_gelu,    &layer_silu,     &layer_hardswish,     &layer_concat,
        &layer_add,       &layer_softmax, &layer_logistic, &layer_linear_output,
    };
    *count = sizeof types / sizeof *types;
    return types;
}

const struct layer_key *layer_common_keys(size_t *count) {
    static const struct layer_key keys[] = {
        {"from", KEY_LAYERS, offsetof(struct layer, from), 0, 0, "", NULL,
         "names of the layers read, as a or a,b; by default the layer above"},
        {"cut", KEY_CHOICE, offsetof(struct layer, cut), 0, 0, "auto", cut_names,
         "how partitions divide the layer: rows, maps, units, inputs, none; auto: with few bytes "
         "between them"},
        {"init", KEY_INIT, 0, 0, 0, "", NULL,
         "initial weights: he, standard, glorot, small, normal:DEVIATION, uniform:HALFWIDTH, "
         "zero or one; by default one for norms, standard for outputs that read dense layers, else "
         "small; before relu and its like he, for dense standard; else glorot"},
        {"bias", KEY_REAL, offsetof(struct layer, bias), -1e6, 1e6, "0", NULL,
         "initial value of the biases"},
        {"rate", KEY_REAL, offsetof(struct layer, rate), 0, 1e6, "1", NULL,
         "multiplier of the learning rate"},
        {"decay", KEY_REAL, offsetof(struct layer, decay), 0, 1e6, "-1", NULL,
         "weight decay of this layer; by default that of the command line"},
    };
    *count = sizeof keys / sizeof *keys;
    return keys;
}

// Row `at` of the keys of all types, one type behind the other, and then the common ones.
static const char *any_key(size_t at) {
    size_t types, common;
    const struct layer_type *const *type = layer_types(&types);
    const struct layer_key *shared = layer_common_keys(&common);
    for (size_t i = 0; i < types; at -= type[i++]->key_count)
        if (at < type[i]->key_count)
            return type[i]->keys[at].name;
    return at < common ? shared[at].name : NULL;
}

static bool came_before(size_t at) {
    for (size_t i = 0; i < at; i++)
        if (!strcmp(any_key(i), any_key(at)))
            return true;
    return false;
}

const char *model_key(size_t index) {
    for (size_t at = 0; any_key(at); at++)
        if (!came_before(at) && index-- == 0)
            return any_key(at);
    return NULL;
}
