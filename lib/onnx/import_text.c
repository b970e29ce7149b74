// The text of the model: which layers are needed, what they are called, and their lines.
#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/grow.h"
#include "model/keys.h"
#include "onnx/import_internal.h"

enum { NAME_MOST = 63 };

// --- which layers -------------------------------------------------------------------------

// Layers read those above them, and the last is the output.
static void mark_used(struct importing *im) {
    im->drafts[im->draft_count - 1].used = true;
    for (int i = im->draft_count - 1; i >= 0; i--)
        for (int j = 0; im->drafts[i].used && j < im->drafts[i].from_count; j++) {
            struct draft *from = &im->drafts[im->drafts[i].from[j]];
            from->used = true;
            from->readers++;
        }
}

static bool takes_act(const char *type) {
    static const char *const types[] = {"conv",      "dense",     "batchnorm",
                                        "groupnorm", "layernorm", "add"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i], type))
            return true;
    return false;
}

static bool is_act(const char *type) {
    for (const char *const *name = act_names; *name; name++)
        if (!strcmp(*name, type))
            return true;
    return !strcmp(type, "leaky");
}

static int stand_in(const struct importing *im, int i) {
    while (im->drafts[i].stands_in != i)
        i = im->drafts[i].stands_in;
    return i;
}

// An activation alone behind a layer becomes a key of its. The last is the output, which is none
// even where it is called linear.
static void join_activations(struct importing *im) {
    for (int i = 1; i < im->draft_count - 1; i++) {
        struct draft *draft = &im->drafts[i];
        int below = draft->used ? stand_in(im, draft->from[0]) : 0;
        struct draft *layer = &im->drafts[below];
        if (!draft->used || !is_act(draft->type) || !takes_act(layer->type) || layer->act ||
            im->drafts[draft->from[0]].readers != 1)
            continue;
        layer->act = keep_format(&im->keep, " act=%s%s", draft->type, draft->keys);
        draft->stands_in = below;
    }
}

// --- names --------------------------------------------------------------------------------

// "layer1.0.conv1.weight" without its end.
static bool name_by_weights(char name[NAME_MOST + 1], const struct draft *draft) {
    static const char end[] = ".weight";
    size_t length = draft->weight_name ? strlen(draft->weight_name) : 0, cut = sizeof end - 1;
    if (length <= cut || length - cut > NAME_MOST ||
        strcmp(draft->weight_name + length - cut, end) != 0)
        return false;
    snprintf(name, NAME_MOST + 1, "%.*s", (int)(length - cut), draft->weight_name);
    return true;
}

// One more part of "/layer1/layer1.0/conv1/Conv", in which "layer1.0" says again what "layer1" did.
static void add_part(char name[NAME_MOST + 1], size_t *last, const char *part, size_t length) {
    size_t used = strlen(name), before = used - *last;
    bool again =
        before > 0 && length > before && !memcmp(name + *last, part, before) && part[before] == '.';
    if (again)
        name[used = *last] = 0;
    *last = used + (used > 0 && !again);
    snprintf(name + used, NAME_MOST + 1 - used, "%s%.*s", used > 0 && !again ? "." : "",
             (int)length, part);
    *last = *last < strlen(name) ? *last : 0;
}

// Without the operator, as "Conv" and "Conv_1", at the end of a path.
static void name_by_path(char name[NAME_MOST + 1], const Onnx__NodeProto *node) {
    size_t last = 0;
    for (const char *part = node->name; *part;) {
        size_t length = strcspn(part, "/");
        bool end = !part[length], path = part > node->name;
        bool operator_only = end && path && !strncmp(part, node->op_type, strlen(node->op_type));
        if (length > 0 && length <= NAME_MOST && !operator_only)
            add_part(name, &last, part, length);
        part += length + !end;
    }
}

static void make_fit(char *name) {
    char *from = name, *to = name;
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    while (*from && (!strchr(fit, *from) || strchr("0123456789_-.", *from)))
        from++;
    for (; *from; from++)
        *to++ = strchr(fit, *from) ? *from : '_';
    while (to > name && to[-1] == '.')
        to--;
    *to = 0;
}

static bool is_taken(const struct importing *im, int index, const char *name) {
    for (int i = 0; i < index; i++)
        if (im->drafts[i].name && !strcmp(im->drafts[i].name, name))
            return true;
    return !strcmp(name, "input");
}

static int number_of(const struct importing *im, int index) {
    int number = 0;
    for (int i = 0; i <= index; i++)
        number += im->drafts[i].name && !strcmp(im->drafts[i].type, im->drafts[index].type);
    return number + 1;
}

static int name_layer(struct importing *im, int index, struct error *err) {
    struct draft *draft = &im->drafts[index];
    char name[NAME_MOST + 1] = "";
    if (!name_by_weights(name, draft) && draft->node && draft->node->name)
        name_by_path(name, draft->node);
    if (im->ours && !draft->weight_name && strrchr(name, '.'))
        *strrchr(name, '.') = 0; // "maxpool1.pooled"
    make_fit(name);
    const char *names[] = {name, keep_format(&im->keep, "%.50s_%d", name, index),
                           keep_format(&im->keep, "%s%d", draft->type, number_of(im, index)),
                           keep_format(&im->keep, "%s%d_", draft->type, index)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (model_layer_may_be(names[i]) && !is_taken(im, index, names[i])) {
            draft->name = keep_text(&im->keep, names[i]);
            return draft->name ? STATUS_OK : error_nomem(err);
        }
    return error_set(err, STATUS_DATA, "no name is left for the layer of node '%.100s'",
                     draft->node ? import_node_name(draft->node) : "");
}

// --- lines --------------------------------------------------------------------------------

static bool is_line(const struct importing *im, int i) {
    return im->drafts[i].used && im->drafts[i].stands_in == i;
}

static void put_input(struct importing *im, const char *ops, struct grow *to) {
    struct shape shape = im->drafts[0].out;
    if (shape.h == 1 && shape.w == 1)
        grow_format(to, "input %d", shape.c);
    else
        grow_format(to, "input %dx%dx%d", shape.c, shape.h, shape.w);
    if (*ops)
        grow_format(to, " ops='%s'", ops);
    grow_format(to, "\n");
}

// They must say what they read.
static bool joins(const char *type) {
    return !strcmp(type, "add") || !strcmp(type, "concat");
}

static void put_line(struct importing *im, int i, int above, struct grow *to) {
    const struct draft *draft = &im->drafts[i];
    grow_format(to, "%s %s", draft->type, draft->name);
    if (draft->groups > 0)
        grow_format(to, " groups=%d", draft->groups);
    grow_format(to, "%s%s", draft->keys, draft->act ? draft->act : "");
    bool next = !joins(draft->type) && stand_in(im, draft->from[0]) == above;
    for (int j = 0; !next && j < draft->from_count; j++) {
        int from = stand_in(im, draft->from[j]);
        grow_format(to, "%s%s", j ? "," : " from=", from ? im->drafts[from].name : "input");
    }
    grow_format(to, "\n");
}

int import_text(struct importing *im, const char *ops, char **text, struct error *err) {
    struct grow to = {0};
    int status = STATUS_OK, above = 0;
    mark_used(im);
    join_activations(im);
    im->drafts[0].used = true;
    put_input(im, ops, &to);
    for (int i = 1; !status && i < im->draft_count; i++) {
        if (!is_line(im, i))
            continue;
        status = name_layer(im, i, err);
        if (!status)
            put_line(im, i, above, &to);
        above = i;
    }
    *text = grow_take(&to);
    if (!status && (!*text || im->keep.failed))
        status = error_nomem(err);
    return status;
}
