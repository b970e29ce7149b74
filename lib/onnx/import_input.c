// What the graph takes, and the operations that make it of a picture.
#include <inttypes.h>
#include <math.h>
#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "image/floats.h"
#include "onnx/import_internal.h"
#include "ops/ops.h"

// What torchvision's models were trained on, and so most of those of three channels.
#define OPS_OF_COLOURS "scale 1/255; mean 0.485,0.456,0.406; std 0.229,0.224,0.225"
#define OPS_OF_GRAYS "scale 1/255"

#define MOST 1e9 // of the numbers of these operations

enum { CHANNELS_MOST = IMAGE_LINEAR_MOST }; // with numbers of their own

// --- shape --------------------------------------------------------------------------------

static const Onnx__ValueInfoProto *find_input(struct importing *im) {
    for (size_t i = 0; i < im->graph->n_input; i++) {
        const char *name = im->graph->input[i]->name;
        const struct value *value = name ? import_find_value(im, name) : NULL;
        if (value && value->kind == VALUE_LATER)
            return im->graph->input[i];
    }
    return NULL;
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *input) {
    const Onnx__TypeProto *type = input->type;
    return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                   type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
               ? type->tensor_type->shape
               : NULL;
}

// 0: any.
static int64_t dimension(const Onnx__TensorShapeProto *shape, size_t i) {
    return i < shape->n_dim &&
                   shape->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
               ? shape->dim[i]->dim_value
               : 0;
}

// One number is that of the values of a flat input.
static int read_wish(const char *text, bool flat, int64_t dims[3], struct error *err) {
    char behind;
    if (flat && sscanf(text, "%9" SCNd64 "%c", &dims[0], &behind) == 1) {
        dims[1] = dims[2] = 1;
        return STATUS_OK;
    }
    if (sscanf(text, "%9" SCNd64 "x%9" SCNd64 "x%9" SCNd64 "%c", &dims[0], &dims[1], &dims[2],
               &behind) == 3)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "--shape %s: %s expected, as in %s", text,
                     flat ? "the number of values is" : "channels x height x width are",
                     flat ? "144" : "3x224x224");
}

// What the file leaves open is as it is wished.
static int resolve_shape(struct importing *im, const Onnx__TensorShapeProto *shape, int64_t dims[3],
                         struct error *err) {
    int64_t wished[3] = {0, 0, 0};
    bool flat = shape->n_dim == 2;
    int status = im->wish->shape ? read_wish(im->wish->shape, flat, wished, err) : STATUS_OK;
    for (size_t i = 0; !status && i < 3; i++) {
        int64_t given = i + 1 < shape->n_dim ? dimension(shape, i + 1) : 1;
        if (given != 0 && wished[i] != 0 && given != wished[i])
            return error_set(err, STATUS_DATA,
                             "the graph takes %" PRId64 ", not the %" PRId64 " of --shape %s",
                             given, wished[i], im->wish->shape);
        dims[i] = given ? given : wished[i];
        if (dims[i] == 0)
            return error_set(err, STATUS_DATA,
                             flat ? "the graph takes any number of values; --shape N says how many"
                                  : "the graph takes pictures of any size; --shape CxHxW says of "
                                    "which");
    }
    return status;
}

int import_input(struct importing *im, struct error *err) {
    const Onnx__ValueInfoProto *input = find_input(im);
    const Onnx__TensorShapeProto *shape = input ? shape_of(input) : NULL;
    struct draft *draft;
    int64_t dims[3];
    if (!shape || (shape->n_dim != 4 && shape->n_dim != 2))
        return error_set(err, STATUS_DATA,
                         "the graph takes no floats of samples x channels x height x width, or "
                         "samples x values");
    int status = resolve_shape(im, shape, dims, err);
    if (!status)
        status = import_draft(im, NULL, "input", NULL, &draft, err);
    if (!status)
        status = import_shape(&draft->out, dims[0], dims[1], dims[2], err);
    if (status)
        return status;
    struct value *value = import_find_value(im, input->name);
    *value = (struct value){.name = value->name,
                            .kind = VALUE_LAYER,
                            .readers = value->readers,
                            .flat = shape->n_dim == 2};
    return STATUS_OK;
}

// --- operations in the graph --------------------------------------------------------------

// By channel: one number, or one for each.
static int read_channels(const struct importing *im, const struct value *value,
                         const Onnx__TensorProto *tensor, double *values, struct error *err) {
    size_t count = import_tensor_count(tensor);
    int channels = import_out(im, value).c;
    if (count != 1 && !import_is_of_maps(im, value, tensor))
        return error_set(err, STATUS_DATA,
                         "of the input it is supported with a number, or one for each channel; "
                         "Add and Sub with a picture, too");
    for (int c = 0; c < channels; c++)
        values[c] = (double)import_float(tensor, count == 1 ? 0 : (size_t)c);
    return STATUS_OK;
}

static int make_channels(struct importing *im, int channels, struct error *err) {
    if (im->factor)
        return STATUS_OK;
    im->factor = keep_room(&im->keep, (size_t)channels, sizeof *im->factor);
    im->summand = keep_room(&im->keep, (size_t)channels, sizeof *im->summand);
    im->summands = (size_t)channels;
    if (!im->factor || !im->summand)
        return error_nomem(err);
    for (int c = 0; c < channels; c++)
        im->factor[c] = 1;
    return STATUS_OK;
}

// The channel of a summand.
static size_t channel_of(const struct importing *im, size_t i) {
    return i / (im->summands / (size_t)im->drafts[0].out.c);
}

// From now on each value has a summand of its own.
static int spread_summands(struct importing *im, struct error *err) {
    size_t n = shape_size(im->drafts[0].out), each = n / im->summands;
    double *all = keep_room(&im->keep, n, sizeof *all);
    if (!all)
        return error_nomem(err);
    for (size_t i = 0; i < n; i++)
        all[i] = im->summand[i / each];
    im->summand = all;
    im->summands = n;
    return STATUS_OK;
}

// A picture that is added or subtracted.
static int add_picture(struct importing *im, char op, const Onnx__TensorProto *tensor,
                       struct error *err) {
    int status = spread_summands(im, err);
    for (size_t i = 0; !status && i < im->summands; i++) {
        double number = (double)import_float(tensor, i);
        im->summand[i] += op == 'A' ? number : -number;
    }
    return status;
}

static void add_to_channels(struct importing *im, const double *numbers, double sign) {
    for (size_t i = 0; i < im->summands; i++)
        im->summand[i] += sign * numbers[channel_of(im, i)];
}

static void multiply_channels(struct importing *im, const double *numbers) {
    for (size_t i = 0; i < im->summands; i++)
        im->summand[i] *= numbers[channel_of(im, i)];
    for (int c = 0; c < im->drafts[0].out.c; c++)
        im->factor[c] *= numbers[c];
}

static void scale_channels(struct importing *im, char op, double *numbers) {
    for (int c = 0; op == 'D' && c < im->drafts[0].out.c; c++)
        numbers[c] = 1 / numbers[c];
    if (op == 'A' || op == 'S')
        add_to_channels(im, numbers, op == 'A' ? 1 : -1);
    else
        multiply_channels(im, numbers);
}

int import_scale(struct importing *im, const Onnx__NodeProto *node, const struct value *value,
                 const Onnx__TensorProto *tensor, struct error *err) {
    int channels = im->drafts[0].out.c;
    double *numbers = keep_room(&im->keep, (size_t)channels, sizeof *numbers);
    char op = *node->op_type;
    bool picture = strchr("AS", op) && !import_is_of_maps(im, value, tensor) &&
                   import_is_of_values(tensor, im->drafts[0].out);
    int status = numbers ? make_channels(im, channels, err) : error_nomem(err);
    if (!status)
        status = picture ? add_picture(im, op, tensor, err)
                         : read_channels(im, value, tensor, numbers, err);
    if (status)
        return status;
    if (!picture)
        scale_channels(im, op, numbers);
    im->scaler = node;
    import_gives_same(im, node, value);
    return STATUS_OK;
}

// --- operations as text -------------------------------------------------------------------

static bool is_near(double a, double b) {
    return (float)a == (float)b;
}

// As short as it can be.
static void put_number(struct grow *to, double number, bool inverse) {
    char text[32];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, inverse ? 1 / number : number);
        if (is_near(inverse ? 1 / strtod(text, NULL) : strtod(text, NULL), number))
            break;
    }
    grow_format(to, "%s", text);
}

static bool all_same(const double *numbers, int count) {
    bool same = true;
    for (int i = 1; i < count; i++)
        same = same && is_near(numbers[i], numbers[0]);
    return same;
}

static void put_list(struct grow *to, const char *name, const double *numbers, int count,
                     bool inverse) {
    bool same = all_same(numbers, count);
    grow_format(to, "%s%s ", to->length ? "; " : "", name);
    for (int i = 0; i < (same ? 1 : count); i++) {
        grow_format(to, "%s", i ? "," : "");
        put_number(to, numbers[i], inverse);
    }
}

// What scale, mean and std take.
static bool is_op(double factor, double number) {
    return fabs(factor) >= 1 / MOST && fabs(factor) <= MOST && fabs(number) <= MOST;
}

// Whether one number stands for all of a channel, and a list takes those of all channels.
static bool is_list(const struct importing *im, const double *mean) {
    int channels = im->drafts[0].out.c;
    size_t each = im->summands / (size_t)channels;
    bool list = channels <= CHANNELS_MOST || all_same(mean, (int)im->summands);
    for (size_t i = 0; list && i < im->summands; i++)
        list = is_near(mean[i], mean[i / each * each]);
    return list;
}

static int put_picture(const struct importing *im, struct grow *to, const double *mean,
                       struct error *err) {
    struct shape shape = im->drafts[0].out;
    size_t channels = (size_t)shape.c, pixels = (size_t)shape.h * (size_t)shape.w,
           each = pixels * channels / im->summands;
    struct image picture = {0};
    int status = image_shape(&picture, shape.w, shape.h, shape.c, PIXEL_F32, err);
    for (size_t i = 0; !status && i < pixels * channels; i++)
        picture.f32[i % pixels * channels + i / pixels] = (float)mean[i / each];
    char *word = status ? NULL : ops_picture(&picture);
    if (!status && !word)
        status = error_nomem(err);
    else if (!status && strlen(word) > MODEL_TEXT_MAX)
        status = error_set(err, STATUS_DATA,
                           "a picture of %dx%dx%d that is added to the input has no room in the "
                           "text of a model, of at most %d bytes",
                           shape.c, shape.h, shape.w, MODEL_TEXT_MAX);
    else if (!status)
        grow_format(to, "%smean %s", to->length ? "; " : "", word);
    image_free(&picture);
    free(word);
    return status;
}

static int put_mean(const struct importing *im, struct grow *to, const double *mean,
                    struct error *err) {
    int channels = im->drafts[0].out.c, count = channels <= CHANNELS_MOST ? channels : 1;
    double list[CHANNELS_MOST];
    if (!is_list(im, mean))
        return put_picture(im, to, mean, err);
    for (int c = 0; c < count; c++)
        list[c] = mean[(size_t)c * (im->summands / (size_t)channels)];
    put_list(to, "mean", list, count, false);
    return STATUS_OK;
}

static int check_numbers(const struct importing *im, const double *mean, struct error *err) {
    int channels = im->drafts[0].out.c;
    for (size_t i = 0; i < im->summands; i++) {
        double factor = im->factor[channel_of(im, i)];
        if (!is_op(factor, mean[i]))
            return error_set(err, STATUS_DATA,
                             "the graph multiplies its input by %g and adds %g, which no mean and "
                             "std of adam-ops(7) do",
                             factor, im->summand[i]);
    }
    return channels <= CHANNELS_MOST || all_same(im->factor, channels)
               ? STATUS_OK
               : error_set(err, STATUS_DATA,
                           "a factor for each of more than %d channels of the input is not "
                           "supported",
                           CHANNELS_MOST);
}

// x factor + summand = (x - mean) / std; or, as no std is below 0, x scale - mean.
static int put_scale(struct importing *im, struct grow *to, struct error *err) {
    int channels = im->drafts[0].out.c;
    double *mean = keep_room(&im->keep, im->summands, sizeof *mean);
    bool moved = false, scaled = false, turned = false;
    if (!mean)
        return error_nomem(err);
    for (int c = 0; c < channels; c++) {
        turned = turned || im->factor[c] < 0;
        scaled = scaled || im->factor[c] != 1;
    }
    for (size_t i = 0; i < im->summands; i++) {
        mean[i] = 0 - im->summand[i] / (turned ? 1 : im->factor[channel_of(im, i)]);
        moved = moved || im->summand[i] != 0;
    }
    int status = check_numbers(im, mean, err);
    if (!status && turned)
        put_list(to, "scale", im->factor, channels, false);
    if (!status && moved)
        status = put_mean(im, to, mean, err);
    if (!status && scaled && !turned)
        put_list(to, "std", im->factor, channels, true);
    return status;
}

static const char *usual_ops(const struct importing *im) {
    struct shape shape = im->drafts[0].out;
    bool picture = shape.h > 1 || shape.w > 1;
    return !picture ? "" : shape.c == 3 ? OPS_OF_COLOURS : OPS_OF_GRAYS;
}

int import_ops(struct importing *im, const char **ops, bool *guessed, struct error *err) {
    struct grow to = {0};
    const char *wished = im->wish->ops;
    *guessed = !wished && !im->factor && *usual_ops(im);
    grow_format(&to, "%s", wished ? wished : *guessed ? usual_ops(im) : "");
    int status = im->factor ? put_scale(im, &to, err) : STATUS_OK;
    if (status == STATUS_DATA)
        status = import_context(im, im->scaler, err);
    char *text = grow_take(&to);
    if (!status && text)
        *ops = keep_text(&im->keep, text);
    if (!status && (!text || !*ops))
        status = error_nomem(err);
    free(text);
    if (!status && strpbrk(*ops, "'\n\r"))
        status = error_set(err, STATUS_USAGE, "--ops %s: it has a quote or several lines", *ops);
    return status;
}
