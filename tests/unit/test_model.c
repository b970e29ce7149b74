// Model files: what is accepted, what is refused and in which words, shapes,
// places of parameters, overrides, initial values, the table of adam-ctl check.
#include <stdlib.h>

#include "../helper/model_find.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "model/init.h"
#include "model/layer.h"
#include "model/net.h"
#include "model/table.h"
#include "rule/optimizer.h"

static struct model *parse(struct tap *tap, const char *text) {
    struct model *model;
    struct error err = {0};
    if (model_parse(&model, "t.net", text, NULL, 0, &err) != STATUS_OK)
        FAIL(tap, "%s", err.text);
    return model;
}

static struct model *read_example(struct tap *tap, const char *name) {
    char path[64];
    struct model *model;
    struct error err = {0};
    snprintf(path, sizeof path, "examples/%s.net", name);
    if (model_read(&model, path, NULL, 0, &err) != STATUS_OK)
        FAIL(tap, "%s", err.text);
    return model;
}

// That the text, with an override if `set` is not NULL, is refused with this message.
static void refuse(struct tap *tap, const char *text, const char *set, int status,
                   const char *message) {
    struct model *model;
    struct error err = {0};
    CHECK_INT(tap, model_parse(&model, "t.net", text, &set, set != NULL, &err), status);
    CHECK(tap, model == NULL);
    CHECK_TEXT(tap, err.text, message);
    model_free(model);
}

struct mistake {
    const char *text, *message;
};

static void refuse_all(struct tap *tap, const struct mistake *mistakes, size_t count) {
    for (size_t i = 0; i < count; i++)
        refuse(tap, mistakes[i].text, NULL, STATUS_DATA, mistakes[i].message);
}
#define REFUSE_ALL(tap, mistakes) refuse_all(tap, mistakes, sizeof mistakes / sizeof *mistakes)

static void test_keys(struct tap *tap) {
    static const struct mistake mistakes[] = {
        {"input 1x28x28\nconv c1 maps=10 kernal=5\nsoftmax units=10\n",
         "t.net:2:17: error: conv: unknown key 'kernal'; did you mean 'kernel'?\n"
         "    2 | conv c1 maps=10 kernal=5\n"
         "      |                 ^~~~~~"},
        {"input 1x28x28\nconv maps=10 colour=5\nsoftmax units=10\n",
         "t.net:2:14: error: conv: unknown key 'colour'\n"
         "    2 | conv maps=10 colour=5\n"
         "      |              ^~~~~~"},
        {"input 4\ndense units=5 units=6\nsoftmax units=10\n",
         "t.net:2:15: error: dense: key 'units' is given twice\n"
         "    2 | dense units=5 units=6\n"
         "      |               ^~~~~~~"},
        {"input 4 shape=5\nsoftmax units=10\n",
         "t.net:1:9: error: input: key 'shape' is given twice\n"
         "    1 | input 4 shape=5\n"
         "      |         ^~~~~~~"},
        {"input 4\ndense units=ten\nsoftmax units=10\n",
         "t.net:2:13: error: dense: units=ten: not a whole number\n"
         "    2 | dense units=ten\n"
         "      |             ^~~"},
        {"input 4\ndense units=0\nsoftmax units=10\n",
         "t.net:2:13: error: dense: units=0: must be between 1 and 1000000000\n"
         "    2 | dense units=0\n"
         "      |             ^"},
        {"input 4\ndense units=5 dropout=half\nsoftmax units=10\n",
         "t.net:2:23: error: dense: dropout=half: not a number\n"
         "    2 | dense units=5 dropout=half\n"
         "      |                       ^~~~"},
        {"input 4\ndense units=5 dropout=1\nsoftmax units=10\n",
         "t.net:2:23: error: dense: dropout=1: must be between 0 and 0.999\n"
         "    2 | dense units=5 dropout=1\n"
         "      |                       ^"},
        {"input 4\ndense units=5 decay=-1\nsoftmax units=10\n",
         "t.net:2:21: error: dense: decay=-1: must be between 0 and 1000000\n"
         "    2 | dense units=5 decay=-1\n"
         "      |                     ^~"},
        {"input 4\nsoftmax units=3 class-weights=1,2\n",
         "t.net:2:17: error: softmax: class-weights=1,2 needs a number for each of the 3 classes, "
         "not 2\n"
         "    2 | softmax units=3 class-weights=1,2\n"
         "      |                 ^~~~~~~~~~~~~~~~~"},
        {"input 4\nsoftmax units=3 class-weights=1,,2\n",
         "t.net:2:31: error: softmax: class-weights=1,,2: not a number\n"
         "    2 | softmax units=3 class-weights=1,,2\n"
         "      |                               ^~~~"},
        {"input 4\nsoftmax units=3 class-weights=1,-2,2\n",
         "t.net:2:31: error: softmax: class-weights=1,-2,2: must be between 0 and 1000000\n"
         "    2 | softmax units=3 class-weights=1,-2,2\n"
         "      |                               ^~~~~~"},
        {"input 1x9x9\nconv maps=2 kernel=5y3\nsoftmax units=10\n",
         "t.net:2:20: error: conv: kernel=5y3: not a whole number, or two as in 5x3 (height x "
         "width)\n"
         "    2 | conv maps=2 kernel=5y3\n"
         "      |                    ^~~"},
        {"input 1x9x9\nconv maps=2 kernel=5x0\nsoftmax units=10\n",
         "t.net:2:20: error: conv: kernel=5x0: must be between 1 and 10000\n"
         "    2 | conv maps=2 kernel=5x0\n"
         "      |                    ^~~"},
        {"input 1x9x9\nmaxpool size=al\nsoftmax units=10\n",
         "t.net:2:14: error: maxpool: size=al: not a whole number, nor two as in 5x3, nor all\n"
         "    2 | maxpool size=al\n"
         "      |              ^~"},
        {"input 1x9x9\navgpool size=all pad=1\nsoftmax units=10\n",
         "t.net:2:18: error: avgpool: pad=1 needs a size other than all\n"
         "    2 | avgpool size=all pad=1\n"
         "      |                  ^~~~~"},
        {"input 1x9x9\nconv a maps=2 kernel=3\nconv b maps=2 kernel=3\nadd from=a,b\n"
         "softmax units=10\n",
         "t.net:4:5: error: add: from=a,b needs inputs of one shape, here 2x7x7, but conv 'b' "
         "(line "
         "3) gives 2x5x5\n"
         "    4 | add from=a,b\n"
         "      |     ^~~~~~~~"},
        {"input 6x9x9\ngroupnorm groups=4\nsoftmax units=10\n",
         "t.net:2:11: error: groupnorm: groups=4 needs to divide the maps of its input, but input "
         "(line 1) gives 6x9x9\n"
         "    2 | groupnorm groups=4\n"
         "      |           ^~~~~~~~"},
        {"input 4\nadd\nsoftmax units=10\n",
         "t.net:2:1: error: add: needs from=A,B: the layers to read\n"
         "    2 | add\n"
         "      | ^~~"},
        {"input 4\ndense units=5 act=relo\nsoftmax units=10\n",
         "t.net:2:19: error: dense: act=relo: not one of linear, relu, tanh, sigmoid, leaky, elu, "
         "softplus, relu6, gelu, silu, hardswish; did you mean 'relu'?\n"
         "    2 | dense units=5 act=relo\n"
         "      |                   ^~~~"},
        {"input 4\ndense units=5 init=gauss\nsoftmax units=10\n",
         "t.net:2:20: error: dense: init=gauss: not one of he, standard, glorot, small, zero, "
         "one, normal:DEVIATION, uniform:HALFWIDTH\n"
         "    2 | dense units=5 init=gauss\n"
         "      |                    ^~~~~"},
        {"input 4\ndense units=5 init=normal:x\nsoftmax units=10\n",
         "t.net:2:20: error: dense: init=normal:x: needs a number between 0 and 1e6 behind the "
         "colon\n"
         "    2 | dense units=5 init=normal:x\n"
         "      |                    ^~~~~~~~"},
        {"input 4\ndense act=relu\nsoftmax units=10\n",
         "t.net:2:1: error: dense: needs units=: outputs\n"
         "    2 | dense act=relu\n"
         "      | ^~~~~"},
        {"input\nsoftmax units=10\n",
         "t.net:1:1: error: input: needs shape=: channels x height x width, as in 1x28x28, or one "
         "number\n"
         "    1 | input\n"
         "      | ^~~~~"},
        {"input 28x28\nsoftmax units=10\n",
         "t.net:1:7: error: input: shape=28x28: must be channels x height x width, as in 1x28x28, "
         "or one number\n"
         "    1 | input 28x28\n"
         "      |       ^~~~~"},
        {"input 4\nrelu rate=2\nsoftmax units=10\n", "t.net:2:6: error: relu: unknown key 'rate'\n"
                                                     "    2 | relu rate=2\n"
                                                     "      |      ^~~~"},
    };
    TEST(tap, "mistakes in keys and values are named, with line and caret",
         { REFUSE_ALL(tap, mistakes); });
}

static void test_words(struct tap *tap) {
    static const struct mistake mistakes[] = {
        {"input 4\ncovn maps=3\nsoftmax units=10\n",
         "t.net:2:1: error: unknown layer type 'covn'; did you mean 'conv'?\n"
         "    2 | covn maps=3\n"
         "      | ^~~~"},
        {"input 4\nrecurrent\nsoftmax units=10\n",
         "t.net:2:1: error: unknown layer type 'recurrent'; adam-model(5) lists all\n"
         "    2 | recurrent\n"
         "      | ^~~~~~~~~"},
        {"input 4\nunits=4\nsoftmax units=10\n",
         "t.net:2:1: error: a line starts with the type of a layer\n"
         "    2 | units=4\n"
         "      | ^~~~~~~"},
        {"input 4\ndense units = 5\nsoftmax units=10\n",
         "t.net:2:13: error: no key before '='; keys are written key=value, without blanks\n"
         "    2 | dense units = 5\n"
         "      |             ^"},
        {"input 4\ndense units=\nsoftmax units=10\n", "t.net:2:7: error: 'units' has no value\n"
                                                      "    2 | dense units=\n"
                                                      "      |       ^~~~~~"},
        {"input 4 ops='gray\nsoftmax units=10\n",
         "t.net:1:13: error: no closing quote ' on this line\n"
         "    1 | input 4 ops='gray\n"
         "      |             ^"},
        {"input 4 ops='gray'x\nsoftmax units=10\n",
         "t.net:1:19: error: a blank must follow the closing quote\n"
         "    1 | input 4 ops='gray'x\n"
         "      |                   ^"},
        {"input 4 ops=gray'x'\nsoftmax units=10\n",
         "t.net:1:17: error: a quote may only stand behind 'key='\n"
         "    1 | input 4 ops=gray'x'\n"
         "      |                 ^"},
        {"input 4\ndense d1 d2 units=5\nsoftmax units=10\n",
         "t.net:2:10: error: dense: 'd2' is neither a name, which stands behind the type, nor "
         "key=value\n"
         "    2 | dense d1 d2 units=5\n"
         "      |          ^~"},
        {"input 4\ndense 5 units=5\nsoftmax units=10\n",
         "t.net:2:7: error: dense: '5' is no name: a letter, then letters, digits, '_', '-' and "
         "within it '.', at most 63\n"
         "    2 | dense 5 units=5\n"
         "      |       ^"},
        {"input 4\ndense a. units=5\nsoftmax units=10\n",
         "t.net:2:7: error: dense: 'a.' is no name: a letter, then letters, digits, '_', '-' and "
         "within it '.', at most 63\n"
         "    2 | dense a. units=5\n"
         "      |       ^~"},
        {"input 4\ndense \x1b[2J units=5\nsoftmax units=10\n",
         "t.net:2:7: error: control character 0x1b\n"
         "    2 | dense ?[2J units=5\n"
         "      |       ^"},
        {"input 4\ndense d\xE9 units=5\nsoftmax units=10\n", "t.net:2:8: error: not UTF-8 text\n"
                                                             "    2 | dense d\xE9 units=5\n"
                                                             "      |        ^"},
        {"# nothing but a comment\n", "t.net:1:1: error: no layer in this file"},
    };
    TEST(tap, "mistakes in words, quotes and characters are named", { REFUSE_ALL(tap, mistakes); });
}

static void test_order(struct tap *tap) {
    static const struct mistake mistakes[] = {
        {"dense units=3\nsoftmax units=10\n",
         "t.net:1:1: error: dense: the first layer must be an input, as in 'input 1x28x28'\n"
         "    1 | dense units=3\n"
         "      | ^~~~~"},
        {"input 4\ninput 4\nsoftmax units=10\n",
         "t.net:2:1: error: input: only the first layer may be an input\n"
         "    2 | input 4\n"
         "      | ^~~~~"},
        {"input 4\ndense units=3\n",
         "t.net:2:1: error: dense: the last layer must be an output: softmax, logistic or linear\n"
         "    2 | dense units=3\n"
         "      | ^~~~~"},
        {"input 4\nlogistic units=3\nsoftmax units=10\n",
         "t.net:2:1: error: logistic: an output layer must be the last\n"
         "    2 | logistic units=3\n"
         "      | ^~~~~~~~"},
        {"input 4\ndense a units=3\ndense a units=3\nsoftmax units=10\n",
         "t.net:3:7: error: dense: 'a' is already the name of the dense in line 2\n"
         "    3 | dense a units=3\n"
         "      |       ^"},
        {"input 4\ndense dense2 units=3\ndense units=3\nsoftmax units=10\n",
         "t.net:2:7: error: dense: 'dense2' is already the name of the dense in line 3, by its "
         "type "
         "and number\n"
         "    2 | dense dense2 units=3\n"
         "      |       ^~~~~~"},
        {"input 4\ndense input units=3\nsoftmax units=10\n",
         "t.net:2:7: error: dense: 'input' is already the name of the input in line 1, by its type "
         "and number\n"
         "    2 | dense input units=3\n"
         "      |       ^~~~~"},
        {"input 4\ndense d1 units=3\ndense d2 units=3 from=input\nsoftmax units=10\n",
         "t.net:2:1: error: dense: no layer reads 'd1'\n"
         "    2 | dense d1 units=3\n"
         "      | ^~~~~"},
        {"input 4\ndense d1 units=3\nsoftmax units=10 from=d2\n",
         "t.net:3:23: error: softmax: no layer named 'd2'; did you mean 'd1'?\n"
         "    3 | softmax units=10 from=d2\n"
         "      |                       ^~"},
        {"input 4\ndense d1 units=3 from=d2\ndense d2 units=3\nsoftmax units=10\n",
         "t.net:2:23: error: dense: 'd2' is in line 3; a layer reads layers above it\n"
         "    2 | dense d1 units=3 from=d2\n"
         "      |                       ^~"},
        {"input 4\ndense a units=3\ndense b units=3 from=input\nsoftmax units=10 from=a,b\n",
         "t.net:4:25: error: softmax: reads 1 layer at most\n"
         "    4 | softmax units=10 from=a,b\n"
         "      |                         ^"},
        {"input 4\ndense a units=3\nconcat from=a,a\nsoftmax units=10\n",
         "t.net:3:15: error: concat: 'a' is named twice\n"
         "    3 | concat from=a,a\n"
         "      |               ^"},
        {"input 4\ndense a units=3\nconcat\nsoftmax units=10\n",
         "t.net:3:1: error: concat: needs from=A,B: the layers to read\n"
         "    3 | concat\n"
         "      | ^~~~~~"},
        {"input 4\ndense a units=3\nconcat from=a,\nsoftmax units=10\n",
         "t.net:3:15: error: concat: no layer named ''\n"
         "    3 | concat from=a,\n"
         "      |               ^"},
    };
    TEST(tap, "first, last, names and inputs of layers are checked",
         { REFUSE_ALL(tap, mistakes); });
}

static void test_misfits(struct tap *tap) {
    static const struct mistake mistakes[] = {
        {"input 1x8x8\n\nconv c1 maps=20 kernel=5\nmaxpool    size=5\nsoftmax units=10\n",
         "t.net:4:12: error: maxpool: size=5 needs an input of at least 5x5, but conv 'c1' (line "
         "3) "
         "gives 20x4x4\n"
         "    4 | maxpool    size=5\n"
         "      |            ^~~~~~"},
        {"input 440\nconv maps=2 kernel=3x1\nsoftmax units=10\n",
         "t.net:2:13: error: conv: kernel=3x1 needs an input of at least 3x1, but input (line 1) "
         "gives 440x1x1\n"
         "    2 | conv maps=2 kernel=3x1\n"
         "      |             ^~~~~~~~~~"},
        {"input 3x9x9\nconv maps=4 kernel=3 groups=2\nsoftmax units=10\n",
         "t.net:2:22: error: conv: groups=2 needs to divide its 4 maps and those of its input, but "
         "input (line 1) gives 3x9x9\n"
         "    2 | conv maps=4 kernel=3 groups=2\n"
         "      |                      ^~~~~~~~"},
        {"input 3x9x9\nconv maps=4 kernel=3 pad=3\nsoftmax units=10\n",
         "t.net:2:22: error: conv: pad=3 needs a kernel larger than 3x3\n"
         "    2 | conv maps=4 kernel=3 pad=3\n"
         "      |                      ^~~~~"},
        {"input 3x9x9\nlrn size=4\nsoftmax units=10\n",
         "t.net:2:5: error: lrn: size=4 needs to be odd\n"
         "    2 | lrn size=4\n"
         "      |     ^~~~~~"},
        {"input 3x9x9\nmaxpool p size=3\nconcat from=input,p\nsoftmax units=10\n",
         "t.net:3:8: error: concat: from=input,p needs inputs of one size, here 9x9, but maxpool "
         "'p' (line 2) gives 3x3x3\n"
         "    3 | concat from=input,p\n"
         "      |        ^~~~~~~~~~~~"},
        {"input 40000x40000x9\nsoftmax units=10\n",
         "t.net:1:1: error: input: gives 40000x40000x9, more than 1073741824 values\n"
         "    1 | input 40000x40000x9\n"
         "      | ^~~~~"},
        {"input 1000000\ndense units=1000000000\nsoftmax units=10\n",
         "t.net:2:1: error: dense: the model has more than 1099511627776 parameters\n"
         "    2 | dense units=1000000000\n"
         "      | ^~~~~"},
    };
    TEST(tap, "shapes that clash are shown with both lines", { REFUSE_ALL(tap, mistakes); });
}

static void test_excerpt(struct tap *tap) {
    TEST(tap, "tabs and characters of several bytes keep the caret below its place", {
        refuse(tap, "input\t4\ndense\tunits=5\tact=relo\nsoftmax units=10\n", NULL, STATUS_DATA,
               "t.net:2:19: error: dense: act=relo: not one of linear, relu, tanh, sigmoid, leaky, "
               "elu, softplus, relu6, gelu, silu, hardswish; did you mean 'relu'?\n"
               "    2 | dense\tunits=5\tact=relo\n"
               "      |      \t       \t    ^~~~");
        refuse(tap, "input 4 ops='\xC3\xA9\xE2\x82\xAC' shap=3\nsoftmax units=10\n", NULL,
               STATUS_DATA,
               "t.net:1:21: error: input: unknown key 'shap'; did you mean 'shape'?\n"
               "    1 | input 4 ops='\xC3\xA9\xE2\x82\xAC' shap=3\n"
               "      |                  ^~~~");
    });
    TEST(tap, "of a very long line, what is around the mistake is shown", {
        char text[5000], *p = text;
        p += sprintf(p, "input 4 ops='%2000s'", "");
        p += sprintf(p, " oops=%02000d\nsoftmax units=10\n", 0);
        struct model *model;
        struct error err = {0};
        CHECK_INT(tap, model_parse(&model, "t.net", text, NULL, 0, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "t.net:1:2016: error: input: unknown key 'oops'; did you "
                                    "mean 'ops'?\n    1 |  ") != NULL);
        CHECK(tap, strstr(err.text, "' oops=000") != NULL);
        CHECK(tap, strlen(err.text) < 400);
        const char *line = strstr(err.text, "    1 | "), *caret = strchr(err.text, '^');
        const char *below = strrchr(err.text, '\n') + 1;
        CHECK_INT(tap, strstr(line, "oops") - line, caret - below);
    });
    TEST(tap, "lines may end in CRLF, and a byte-order mark may stand in front", {
        struct model *model =
            parse(tap, "\xEF\xBB\xBFinput 4\r\n# a comment\r\n\r\ndense units=5 # five\r\n"
                       "softmax units=10\r\n");
        CHECK_TEXT(tap, model->text,
                   "input 4\n# a comment\n\ndense units=5 # five\nsoftmax units=10\n");
        CHECK_INT(tap, model->layers[2].line, 5);
        model_free(model);
        refuse(tap, "\xEF\xBB\xBFinput 4\r\ndense unit=5\r\nsoftmax units=10\r\n", NULL,
               STATUS_DATA,
               "t.net:2:7: error: dense: unknown key 'unit'; did you mean 'units'?\n"
               "    2 | dense unit=5\n"
               "      |       ^~~~");
    });
}

static void test_values(struct tap *tap) {
    TEST(tap, "keys and defaults arrive in the layer", {
        struct model *model =
            parse(tap, "input 3x20x30 ops=\"it's # no comment\"# but this is\n"
                       "conv c-1 maps=4 kernel=5x3 pad=2x1 stride=1x2 act=tanh rate=0.5 decay=0\n"
                       "maxpool size=2\n"
                       "dense units=7 dropout=1/4 init=normal:0.25 bias=-1 from=maxpool1\n"
                       "logistic units=10");
        CHECK_TEXT(tap, model_input(model)->ops, "it's # no comment");
        const struct layer *conv = model_find(model, "c-1"), *pool = model_find(model, "maxpool1");
        CHECK_INT(tap, conv->maps, 4);
        CHECK_INT(tap, conv->kernel.h * 10 + conv->kernel.w, 53);
        CHECK_INT(tap, conv->pad.h * 10 + conv->pad.w, 21);
        CHECK_INT(tap, conv->stride.h * 10 + conv->stride.w, 12);
        CHECK_INT(tap, conv->act, ACT_TANH);
        CHECK_INT(tap, conv->groups, 1);
        CHECK_NEAR(tap, conv->rate, 0.5, 0);
        CHECK_NEAR(tap, conv->decay, 0, 0);
        CHECK_INT(tap, pool->kernel.h * 10 + pool->stride.w, 22);
        const struct layer *dense = model_find(model, "dense1");
        CHECK_NEAR(tap, dense->dropout, 0.25, 0);
        CHECK_INT(tap, dense->init, INIT_NORMAL);
        CHECK_NEAR(tap, dense->init_value, 0.25, 0);
        CHECK_NEAR(tap, dense->bias, -1, 0);
        CHECK_NEAR(tap, dense->rate, 1, 0);
        CHECK(tap, dense->decay < 0);
        CHECK_INT(tap, model_classes(model), 10);
        CHECK_INT(tap, model_output(model)->init, INIT_DEFAULT);
        CHECK(tap, model_find(model, "dense2") == NULL);
        model_free(model);
    });
    TEST(tap, "branches join in a concat", {
        struct model *model = parse(tap, "input 3x8x8\n"
                                         "conv a maps=4 kernel=1\n"
                                         "conv b maps=6 kernel=3 pad=1 from=input\n"
                                         "concat from=a,input,b\n"
                                         "softmax units=2\n");
        const struct layer *concat = model_find(model, "concat1");
        CHECK_INT(tap, concat->from_count, 3);
        CHECK_INT(tap, concat->from[0] * 100 + concat->from[1] * 10 + concat->from[2], 102);
        CHECK_INT(tap, concat->out.c, 13);
        model_free(model);
    });
}

static void test_set(struct tap *tap) {
    static const char text[] = "input 1x28x28 # MNIST\n"
                               "conv c1 maps=10 kernel=5 # small\n"
                               "dense units=5 act='relu'\n"
                               "softmax units=10";
    TEST(tap, "overrides change the text in place, and it reads the same again", {
        static const char *const sets[] = {"c1.maps=20",
                                           "c1.act=tanh",
                                           "dense1.act=linear",
                                           "input.shape=3x8x9",
                                           "input.ops=scale 1/255; gray",
                                           "c1.maps=30",
                                           "softmax1.from=dense1"};
        struct model *model, *again;
        struct error err = {0};
        CHECK_INT(tap, model_parse(&model, "t.net", text, sets, 7, &err), STATUS_OK);
        CHECK_TEXT(tap, err.text, "");
        CHECK_TEXT(tap, model->text,
                   "input shape=3x8x9 ops='scale 1/255; gray' # MNIST\n"
                   "conv c1 maps=30 kernel=5 act=tanh # small\n"
                   "dense units=5 act=linear\n"
                   "softmax units=10 from=dense1");
        again = parse(tap, model->text);
        CHECK_TEXT(tap, again->text, model->text);
        CHECK_INT(tap, again->parameter_count, model->parameter_count);
        CHECK_TEXT(tap, again->layers[0].ops, "scale 1/255; gray");
        CHECK_INT(tap, again->layers[1].maps, 30);
        model_free(again);
        model_free(model);
    });
    TEST(tap, "a mistake in an override is a usage error that names it", {
        refuse(tap, text, "c9.maps=20", STATUS_USAGE,
               "--set c9.maps=20: no layer named 'c9'; did you mean 'c1'?");
        refuse(tap, text, "c1.mapz=20", STATUS_USAGE,
               "--set c1.mapz=20: conv: unknown key 'mapz'; did you mean 'maps'?");
        refuse(tap, text, "c1.maps=x", STATUS_USAGE,
               "--set c1.maps=x: conv: maps=x: not a whole number");
        refuse(tap, text, "c1.maps=", STATUS_USAGE,
               "--set c1.maps=: conv: maps=: not a whole number");
        refuse(tap, text, "c1.kernel=29", STATUS_USAGE,
               "--set c1.kernel=29: conv: kernel=29 needs an input of at least 29x29, but input "
               "(line 1) gives 1x28x28");
        refuse(tap, text, "dense1.from=c2", STATUS_USAGE,
               "--set dense1.from=c2: dense: no layer named 'c2'; did you mean 'c1'?");
        refuse(tap, text, "c1=20", STATUS_USAGE,
               "--set c1=20: must be LAYER.KEY=VALUE, as in c1.maps=20");
        refuse(tap, text, "c1.maps", STATUS_USAGE,
               "--set c1.maps: must be LAYER.KEY=VALUE, as in c1.maps=20");
        refuse(tap, text, "input.ops='\"", STATUS_USAGE,
               "--set input.ops='\": the value has both kinds of quotes, or is no plain text");
        refuse(tap, text, "input.ops=a\nb", STATUS_USAGE,
               "--set input.ops=a\nb: the value has both kinds of quotes, or is no plain text");
    });
}

static void check_output(struct tap *tap, const struct model *model, const char *name, int c, int h,
                         int w) {
    const struct layer *layer = model_find(model, name);
    if (!layer) {
        FAIL(tap, "no layer %s", name);
        return;
    }
    if (layer->out.c != c || layer->out.h != h || layer->out.w != w)
        FAIL(tap, "%s gives %dx%dx%d, not %dx%dx%d", name, layer->out.c, layer->out.h, layer->out.w,
             c, h, w);
}

static void refuse_kept_name(struct tap *tap, const char *kept) {
    char text[96];
    struct model *model;
    struct error err = {0};
    snprintf(text, sizeof text, "input 4\ndense %s.a units=5\nsoftmax units=10\n", kept);
    CHECK_INT(tap, model_parse(&model, "t.net", text, NULL, 0, &err), STATUS_DATA);
    CHECK(tap, strstr(err.text, "checkpoints call so what an optimizer keeps") != NULL);
}

static void test_dots(struct tap *tap) {
    static const char text[] = "input 4\ndense a.0.x units=5\ndense momentum units=5\n"
                               "softmax units=10\n";
    TEST(tap, "names may have dots, behind which overrides find the key", {
        static const char *const sets[] = {"a.0.x.units=6", "a.*.act=relu"};
        struct model *model;
        struct error err = {0};
        CHECK_INT(tap, model_parse(&model, "t.net", text, sets, 2, &err), STATUS_OK);
        CHECK_TEXT(tap, model->layers[1].name, "a.0.x");
        CHECK_INT(tap, model->layers[1].units, 6);
        CHECK_INT(tap, model->layers[1].act, ACT_RELU);
        model_free(model);
        refuse(tap, text, "a.0.x=6", STATUS_USAGE, "--set a.0.x=6: no layer named 'a.0'");
    });
    TEST(tap, "no layer has the name of what any optimizer keeps", {
        for (int rule = 0; rule_names[rule]; rule++)
            for (int state = 0; state < optimizer_states((enum rule)rule); state++)
                refuse_kept_name(tap, optimizer_state_name((enum rule)rule, state));
        refuse_kept_name(tap, "trained");
    });
}

static void test_examples(struct tap *tap) {
    TEST(tap, "the net of Adam 4.3.3 has the sizes of the paper", {
        struct model *model = read_example(tap, "mnist");
        check_output(tap, model, "c1", 10, 28, 28);
        check_output(tap, model, "maxpool2", 20, 7, 7);
        check_output(tap, model, "d1", 400, 1, 1);
        CHECK_INT(tap, model->connections,
                  784 * 10 * 25 + 196 * 20 * 250 + 980 * 400 + 400 * 400 + 4000);
        CHECK_INT(tap, model->parameter_count, 260 + 5020 + 980 * 400 + 400 + 160400 + 4010);
        model_free(model);
    });
    TEST(tap, "Rudra's CIFAR-10 net has about 90 K parameters and Caffe's shapes", {
        struct model *model = read_example(tap, "cifar10_full");
        check_output(tap, model, "maxpool1", 32, 16, 16);
        check_output(tap, model, "avgpool1", 32, 8, 8);
        check_output(tap, model, "avgpool2", 64, 4, 4);
        CHECK_INT(tap, model->parameter_count, 89578);
        model_free(model);
    });
    TEST(tap, "the speech net of DistBelief has about 42 M parameters", {
        struct model *model = read_example(tap, "speech");
        CHECK_INT(tap, model->parameter_count,
                  440 * 2560 + 3 * 2560 * 2560 + 4 * 2560 + 2560 * 8192 + 8192);
        model_free(model);
    });
    TEST(tap, "AlexNet ends in 256x6x6 before its dense layers", {
        struct model *model = read_example(tap, "alexnet");
        check_output(tap, model, "c1", 96, 55, 55);
        check_output(tap, model, "maxpool3", 256, 6, 6);
        model_free(model);
    });
    TEST(tap, "the three stages of DistBelief's image net shrink the picture", {
        struct model *model = read_example(tap, "distbelief");
        check_output(tap, model, "f1", 8, 44, 44);
        check_output(tap, model, "lcn3", 8, 2, 2);
        check_output(tap, model, "logistic1", 21, 1, 1);
        CHECK_INT(tap, model_find(model, "f1")->weights.count, 44 * 44 * 8 * 300);
        model_free(model);
    });
    TEST(tap, "parameters lie one behind the other, in layer order, without gaps", {
        struct model *model = read_example(tap, "mnist");
        size_t end = 0;
        for (int i = 0; i < model->layer_count; i++) {
            const struct layer *layer = &model->layers[i];
            CHECK_INT(tap, layer->weights.offset, end);
            end += layer->weights.count;
            CHECK_INT(tap, layer->biases.offset, end);
            end += layer->biases.count;
        }
        CHECK_INT(tap, end, model->parameter_count);
        model_free(model);
    });
}

// Mean, deviation and the largest absolute value of a layer's weights.
struct spread {
    double mean, deviation, largest;
};

static struct spread spread_of(const float *values, size_t n) {
    double sum = 0, squares = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)values[i];
        sum += x;
        squares += x * x;
        largest = fabs(x) > largest ? fabs(x) : largest;
    }
    double mean = sum / (double)n;
    return (struct spread){mean, sqrt(squares / (double)n - mean * mean), largest};
}

static void check_normal(struct tap *tap, const struct model *model, const float *parameters,
                         const char *name, double deviation) {
    const struct parameter *weights = &model_find(model, name)->weights;
    struct spread spread = spread_of(parameters + weights->offset, weights->count);
    CHECK_NEAR(tap, spread.mean, 0, 0.03 * deviation);
    CHECK_NEAR(tap, spread.deviation, deviation, 0.03 * deviation);
    CHECK(tap, spread.largest > 3 * deviation);
}

static void check_uniform(struct tap *tap, const struct model *model, const float *parameters,
                          const char *name, double half) {
    const struct parameter *weights = &model_find(model, name)->weights;
    struct spread spread = spread_of(parameters + weights->offset, weights->count);
    CHECK_NEAR(tap, spread.mean, 0, 0.03 * half);
    CHECK_NEAR(tap, spread.deviation, half / sqrt(3), 0.03 * half);
    CHECK(tap, spread.largest <= half * (1 + 1e-6) && spread.largest > 0.99 * half);
}

static bool same(const float *a, const float *b, int n) {
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

static void test_init(struct tap *tap) {
    static const char text[] = "input 10x10x10\n"
                               "conv before maps=40 kernel=5x3\n" // relu behind a pool
                               "avgpool size=2\n"
                               "relu\n"
                               "dense le units=300 act=relu bias=0.5\n"
                               "dense plain units=300\n"
                               "dense tanh units=300 act=tanh\n"
                               "dense n units=300 act=relu init=normal:0.01\n"
                               "dense u units=300 init=uniform:0.1\n"
                               "dense z units=300 init=zero\n"
                               "dense gl units=300 act=relu init=glorot\n"
                               "dense he units=300 init=he\n"
                               "dense st units=300 init=standard\n"
                               "dense sm units=300 init=small\n"
                               "softmax out units=100";
    TEST(tap, "initial weights have the deviations of their rules, or the one given", {
        struct model *model = parse(tap, text);
        float *w = mem_floats(model->parameter_count);
        model_init(model, w, 7, 1);
        check_normal(tap, model, w, "before", sqrt(2.0 / (10 * 15)));
        check_uniform(tap, model, w, "le", sqrt(1.0 / (40 * 3 * 4)));
        check_normal(tap, model, w, "he", sqrt(2.0 / 300));
        check_uniform(tap, model, w, "st", sqrt(1.0 / 300));
        check_normal(tap, model, w, "sm", 0.01 * sqrt(1.0 / 300));
        check_uniform(tap, model, w, "plain", sqrt(6.0 / 600));
        check_uniform(tap, model, w, "tanh", sqrt(6.0 / 600));
        check_normal(tap, model, w, "n", 0.01);
        check_uniform(tap, model, w, "u", 0.1);
        check_uniform(tap, model, w, "gl", sqrt(6.0 / 600));
        check_uniform(tap, model, w, "out", sqrt(1.0 / 300));
        const struct layer *zero = model_find(model, "z"), *le = model_find(model, "le");
        CHECK_NEAR(tap, spread_of(w + zero->weights.offset, zero->weights.count).largest, 0, 0);
        for (int i = 0; i < 300; i++)
            CHECK_NEAR(tap, w[le->biases.offset + (size_t)i], 0.5, 0);
        model_init_lively(model, w, 7);
        check_normal(tap, model, w, "le", sqrt(2.0 / (40 * 3 * 4)));
        check_uniform(tap, model, w, "out", sqrt(6.0 / 400));
        check_normal(tap, model, w, "sm", 0.01 * sqrt(1.0 / 300));
        free(w);
        model_free(model);
    });
    TEST(tap, "initial weights of convolutions are smaller where inputs deviate more", {
        static const char plain[] = "input 30x9x9\nconv one maps=400 kernel=3 act=relu\n%s"
                                    "conv own maps=60 kernel=3 act=relu init=he\n"
                                    "conv last maps=200 kernel=3 act=relu\nsoftmax units=10";
        static const struct {
            const char *between;
            double deviation, share;
        } cases[] = {
            {"", 0.5, 1},
            {"", 1.9, 1},
            {"", 4, 0.62996},  // the third root of four, below
            {"", 64, 0.40825}, // the standard rule's
            {"lcn size=3\n", 64, 1},
            {"batchnorm\n", 64, 1},
            {"groupnorm groups=5\n", 64, 1},
            {"layernorm\n", 64, 1},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char whole[400];
            snprintf(whole, sizeof whole, plain, cases[i].between);
            struct model *model = parse(tap, whole);
            float *w = mem_floats(model->parameter_count);
            model_init(model, w, 7, cases[i].deviation);
            check_normal(tap, model, w, "one", cases[i].share * sqrt(2.0 / (30 * 9)));
            check_normal(tap, model, w, "own", sqrt(2.0 / (400 * 9)));
            check_normal(tap, model, w, "last", cases[i].share * sqrt(2.0 / (60 * 9)));
            free(w);
            model_free(model);
        }
    });
    TEST(tap, "initial weights that are made in pieces are the same", {
        struct model *model = parse(tap, text);
        size_t n = model->parameter_count;
        float *whole = mem_floats(n), *pieces = mem_floats(n + 8);
        model_init(model, whole, 7, 1);
        struct model_filler filler = model_filler(model, 7, 1);
        for (size_t first = 0, size = 1; first < n; first += size, size = size * 3 % 10007) {
            size = n - first < size ? n - first : size;
            model_fill(&filler, pieces + first, size);
        }
        CHECK(tap, !memcmp(whole, pieces, n * sizeof *whole));
        model_fill(&filler, pieces + n, 8); // nothing is left
        CHECK_NEAR(tap, spread_of(pieces + n, 8).largest, 0, 0);
        free(whole);
        free(pieces);
        model_free(model);
    });
    TEST(tap, "norms begin as they are, and layers below them by the standard rule", {
        struct model *model = parse(tap, "input 10x9x9\nconv before maps=40 kernel=5x3\n"
                                         "groupnorm gn groups=8\nsilu\nconv maps=4 kernel=3\n"
                                         "layernorm ln bias=0.25\nsoftmax units=10");
        float *w = mem_floats(model->parameter_count);
        model_init(model, w, 7, 1);
        check_uniform(tap, model, w, "before", sqrt(1.0 / (10 * 15)));
        const struct layer *gn = model_find(model, "gn"), *ln = model_find(model, "ln");
        CHECK_INT(tap, gn->weights.count, 40);
        CHECK_INT(tap, ln->biases.count, 4 * 3 * 5);
        for (size_t i = 0; i < 40; i++)
            CHECK(tap, w[gn->weights.offset + i] == 1 && w[gn->biases.offset + i] == 0);
        for (size_t i = 0; i < ln->weights.count; i++)
            CHECK(tap, w[ln->weights.offset + i] == 1 && w[ln->biases.offset + i] == 0.25f);
        free(w);
        model_free(model);
    });
    TEST(tap, "outputs that read no dense layer begin near zero", {
        struct model *model = parse(tap, "input 3x9x9\nconv maps=40 kernel=3 act=relu\n"
                                         "maxpool size=2\ndropout\nsoftmax out units=100");
        float *w = mem_floats(model->parameter_count);
        model_init(model, w, 7, 1);
        check_normal(tap, model, w, "out", 0.01 * sqrt(1.0 / (40 * 3 * 3)));
        free(w);
        model_free(model);
    });
    TEST(tap, "a layer's initial weights depend on the seed and its name alone", {
        struct model *a = parse(tap, "input 6\ndense x units=5\ndense y units=5\nsoftmax units=2");
        struct model *b = parse(tap, "input 5\ndense y units=5\nsoftmax units=2");
        float wa[200], wb[200], wc[200];
        model_init(a, wa, 3, 1);
        model_init(b, wb, 3, 1);
        model_init(b, wc, 4, 1);
        const float *ya = wa + model_find(a, "y")->weights.offset;
        const float *xa = wa + model_find(a, "x")->weights.offset;
        CHECK(tap, same(ya, wb, 25));
        CHECK(tap, !same(xa, wb, 25));
        CHECK(tap, !same(wc, wb, 25));
        model_free(a);
        model_free(b);
    });
}

static void test_limits(struct tap *tap) {
    TEST(tap, "too many layers and too long a text are refused", {
        size_t size = (1 << 20) + 100;
        char *text = mem_zeroed(size, 1);
        char *end = text + sprintf(text, "input 4\n");
        for (int i = 0; i < 10000; i++)
            end += sprintf(end, "relu\n");
        struct model *model;
        struct error err = {0};
        CHECK_INT(tap, model_parse(&model, "t.net", text, NULL, 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text,
                   "t.net:10001:1: error: more than 10000 layers\n10001 | relu\n      | ^");
        memset(text, '#', size - 1);
        CHECK_INT(tap, model_parse(&model, "t.net", text, NULL, 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "t.net: larger than 1048576 bytes: not a model file");
        free(text);
    });
    TEST(tap, "files that are not there, no files or not text are named", {
        struct model *model;
        struct error err = {0};
        CHECK_INT(tap, model_read(&model, "no/such.net", NULL, 0, &err), STATUS_NOINPUT);
        CHECK_TEXT(tap, err.text, "cannot open no/such.net: No such file or directory");
        CHECK_INT(tap, model_read(&model, "lib", NULL, 0, &err), STATUS_NOINPUT);
        CHECK_TEXT(tap, err.text, "cannot read lib: Is a directory");
        CHECK_INT(tap, model_read(&model, "/dev/zero", NULL, 0, &err), STATUS_DATA);
        CHECK_TEXT(tap, err.text, "/dev/zero: binary data: not a model file");
        CHECK(tap, model == NULL);
    });
}

static void test_table(struct tap *tap) {
    static const char text[] = "input 1x4x4\nconv c maps=2 kernel=3\nsoftmax units=3\n";
    TEST(tap, "the table shows shapes, parameters and connections", {
        struct model *model = parse(tap, text);
        static const char wanted[] =
            "line  layer     type     reads  output  parameters  connections  activations  "
            "update\n"
            "   1  input     input    -      1x4x4            0            0          128  "
            "     0\n"
            "   2  c         conv     input  2x2x2           20           72           64  "
            "    80\n"
            "   3  softmax1  softmax  c      3               27           24           24  "
            "   108\n"
            "      total                                     47           96          216  "
            "   188\n"
            "memory in training: weights 188 + 3 threads x (";
        char *table = table_text(model, 2, 3);
        size_t context = net_bytes(model, 2, NET_TRAIN);
        CHECK(tap, table && strstr(table, " at batch 2 + update 188) = "));
        if (table && strlen(table) > strlen(wanted))
            table[strlen(wanted)] = 0; // what is behind depends on the kernels' scratch
        CHECK_TEXT(tap, table, wanted);
        free(table);
        struct model_cost cost = model_cost(model, 2, 3);
        CHECK_INT(tap, cost.context, context);
        CHECK_INT(tap, cost.total, 188 + 3 * (context + 188));
        model_free(model);
    });
}

int main(void) {
    struct tap tap = {0};
    test_keys(&tap);
    test_words(&tap);
    test_order(&tap);
    test_misfits(&tap);
    test_excerpt(&tap);
    test_values(&tap);
    test_set(&tap);
    test_dots(&tap);
    test_examples(&tap);
    test_init(&tap);
    test_limits(&tap);
    test_table(&tap);
    return tap_done(&tap);
}
