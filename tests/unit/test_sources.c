// Every kind of input, written by other hands (Python's tarfile, gzip, struct,
// numpy and PIL; tar, zstd and xz), well-formed and hostile.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"

static char folder[SCRATCH_PATH];

// All inputs below hold the same pictures: this value at sample i, row y,
// column x and channel c, and this label.
static int value_at(int i, int y, int x, int c) {
    return (i * 7 + y * 5 + x * 3 + c * 11) % 251;
}
static int label_at(int i) {
    return i * 3 % 4;
}

#define FORMULA                                                                                    \
    "import numpy as np, struct, io, tarfile, os\n"                                                \
    "def pic(i, h, w, c):\n"                                                                       \
    "    y, x, k = np.mgrid[0:h, 0:w, 0:c]\n"                                                      \
    "    return ((i * 7 + y * 5 + x * 3 + k * 11) % 251).astype(np.uint8)\n"                       \
    "def pics(n, h, w, c): return np.stack([pic(i, h, w, c) for i in range(n)])\n"                 \
    "def labels(n): return np.array([i * 3 % 4 for i in range(n)])\n"                              \
    "def png(i, h, w, c):\n"                                                                       \
    "    from PIL import Image\n"                                                                  \
    "    b = io.BytesIO(); a = pic(i, h, w, c)\n"                                                  \
    "    Image.fromarray(a[:, :, 0] if c == 1 else a).save(b, 'PNG'); return b.getvalue()\n"       \
    "def member(t, name, data, **kw):\n"                                                           \
    "    m = tarfile.TarInfo(name); m.size = len(data)\n"                                          \
    "    for k, v in kw.items(): setattr(m, k, v)\n"                                               \
    "    t.addfile(m, io.BytesIO(data))\n"

// What a source of these pictures must look like.
struct wanted {
    int count, channels, height, width;
    const char *key;   // printf format of i
    const char *class; // printf format of the label; NULL: none
    bool same_labels;  // the label is the number itself
};

static bool sample_is(const struct sample *sample, const struct classes *classes, int i,
                      const struct wanted *wanted) {
    const struct image *image = &sample->image;
    char key[64];
    char class[64] = "-";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(key, sizeof key, wanted->key, i);
    if (wanted->class)
        snprintf(class, sizeof class, wanted->class, label_at(i));
#pragma GCC diagnostic pop
    const char *name = sample->label == LABEL_NONE ? "-" : classes->names[sample->label];
    if (strcmp(key, sample->key) != 0 || strcmp(class, name) != 0 ||
        (wanted->same_labels && sample->label != label_at(i)) ||
        image->channels != wanted->channels || image->height != wanted->height ||
        image->width != wanted->width) {
        printf("# sample %d is %s %s %dx%dx%d\n", i, sample->key, name, image->channels,
               image->height, image->width);
        return false;
    }
    for (int v = 0; v < (int)image_values(image); v++) {
        int c = v % image->channels, x = v / image->channels % image->width;
        int y = v / image->channels / image->width;
        double got = image->type == PIXEL_F32 ? (double)image->f32[v] : image->u8[v];
        if (got != value_at(i, y, x, c)) {
            printf("# sample %d, row %d, column %d, channel %d is %g\n", i, y, x, c, got);
            return false;
        }
    }
    return true;
}

static bool source_is(struct source *source, const struct classes *classes,
                      const struct wanted *wanted) {
    struct sample sample = {0};
    struct error err = {0};
    bool more = true, good = true;
    int i = 0;
    int64_t count = source_count(source);
    while (good) {
        int status = source_next(source, &sample, &more, &err);
        if (!status && !more)
            break;
        if (!status)
            status = sample_decode(&sample, &(struct decode_options){0}, &err);
        if (status)
            printf("# sample %d: status %d: %s\n", i, status, err.text);
        good = !status && i < wanted->count && sample_is(&sample, classes, i, wanted);
        i++;
    }
    sample_free(&sample);
    return good && i == wanted->count && (count < 0 || count == i);
}

static bool gives(const char *path, const struct source_options *options,
                  const struct wanted *wanted) {
    struct classes classes = {0};
    struct source *source;
    struct error err = {0};
    bool good = false;
    if (source_open(&source, path, options, &classes, &err)) {
        printf("# %d: %s\n", err.status, err.text);
    } else {
        good = source_is(source, &classes, wanted);
        source_close(source);
    }
    classes_free(&classes);
    return good;
}

// Whether reading says this sentence, as a report or as the end.
static bool says(const char *name, const struct source_options *options, const char *sentence) {
    struct account account = account_of(in(folder, name), options);
    bool said = strstr(account.text, sentence) != NULL;
    if (!said)
        printf("# %s said: %s\n", name, account.text);
    account_free(&account);
    return said;
}

static void test_idx(struct tap *tap) {
    struct wanted gray = {6, 1, 4, 5, "%07d", "%d", true}, none = gray, rgb = gray;
    none.class = NULL;
    none.same_labels = false;
    rgb.channels = 3;
    CHECK(tap,
          python(
              folder, FORMULA
              "def idx(name, code, dtype, a):\n"
              "    open(name, 'wb').write(bytes([0, 0, code, a.ndim]) +\n"
              "        struct.pack('>%dI' % a.ndim, *a.shape) + a.astype(dtype).tobytes())\n"
              "a = pics(6, 4, 5, 1)[:, :, :, 0]; small = a // 2\n"
              "for code, dtype in (8, '>u1'), (11, '>i2'), (12, '>i4'), (13, '>f4'), (14, '>f8'):\n"
              "    idx('x%02x' % code, code, dtype, a)\n"
              "idx('train-images-idx3-ubyte', 8, '>u1', a)\n"
              "idx('train-labels-idx1-ubyte', 8, '>u1', labels(6))\n"
              "idx('long-labels', 12, '>i4', labels(6))\n"
              "idx('short-labels', 8, '>u1', labels(5))\n"
              "idx('rgb', 8, '>u1', pics(6, 4, 5, 3))\n"
              "idx('one', 8, '>u1', labels(6))\n"
              "idx('signed', 9, '>i1', -np.ones((1, 1, 1)))\n"
              "whole = open('x08', 'rb').read()\n"
              "open('short08', 'wb').write(whole[:-3]); open('more', 'wb').write(whole + b'x')\n"
              "open('huge', 'wb').write(bytes([0, 0, 8, 3]) + b'\\xff' * 12)\n"
              "open('wide', 'wb').write(bytes([0, 0, 14, 4]) + b'\\xff' * 16)\n"));
    TEST(tap, "IDX of every element type, with labels beside it, named, or none", {
        static const char *const names[] = {"x08", "x0b", "x0c", "x0d", "x0e"};
        for (int i = 0; i < 5; i++)
            CHECK(tap, gives(in(folder, names[i]), NULL, &none));
        CHECK(tap, gives(in(folder, "train-images-idx3-ubyte"), NULL, &gray));
        CHECK(tap, gives(in(folder, "train-images-idx3-ubyte"),
                         &(struct source_options){.label_from = LABEL_NO}, &none));
        char labels[SCRATCH_PATH + 32];
        snprintf(labels, sizeof labels, "%s/long-labels", folder);
        struct source_options with = {.labels = labels};
        CHECK(tap, gives(in(folder, "x08"), &with, &gray));
        CHECK(tap, gives(in(folder, "rgb"), &with, &rgb));
        struct account account = account_of(in(folder, "signed"), NULL);
        CHECK(tap, strstr(account.text, "1x1x1 f32") != NULL);
        account_free(&account);
    });
    TEST(tap, "IDX and its labels are read from gzip, zstd and xz", {
        CHECK_INT(tap, shell(folder, "gzip -k train-*; zstd -q x0b -o z; xz -k x0d"), 0);
        CHECK_INT(tap, shell(folder, "mkdir gz; mv train-*.gz gz"), 0);
        CHECK(tap, gives(in(folder, "gz/train-images-idx3-ubyte.gz"), NULL, &gray));
        CHECK(tap, gives(in(folder, "z"), NULL, &none));
        CHECK(tap, gives(in(folder, "x0d.xz"), NULL, &none));
    });
    TEST(tap, "IDX that is short, long, huge or holds labels only is refused by name", {
        char labels[SCRATCH_PATH + 32];
        snprintf(labels, sizeof labels, "%s/short-labels", folder);
        CHECK(tap, says("short08", NULL, "ends within sample 5 of 6, at offset 133"));
        CHECK(tap, says("more", NULL, "bytes behind the last sample, at offset 136"));
        CHECK(tap, says("huge", NULL, "huge: its dimensions are too large"));
        CHECK(tap, says("wide", NULL, "dimensions are too large"));
        CHECK(tap, says("one", NULL, "holds labels and no pictures"));
        CHECK(tap, says("x08", &(struct source_options){.labels = labels},
                        "short-labels: 5 labels for 6 samples"));
    });
}

static void test_npy(struct tap *tap) {
    struct wanted gray = {6, 1, 4, 5, "%07d", NULL, false}, rgb = gray, flat = gray;
    rgb.channels = 3;
    flat.height = 1;
    CHECK(
        tap,
        python(
            folder, FORMULA
            "a = pics(6, 4, 5, 1)[:, :, :, 0]\n"
            "for t in 'u1 <i2 >i2 <u2 <i4 >i4 <i8 <u8 <f2 <f4 >f4 <f8 >f8'.split():\n"
            "    np.save('n' + t.replace('<', 'l').replace('>', 'b'), a.astype(t))\n"
            "np.save('nrgb', pics(6, 4, 5, 3)); np.save('nflat', pics(6, 1, 5, 1)[:, 0, :, 0])\n"
            "np.save('nfortran', np.asfortranarray(a)); np.save('nlabels', labels(6))\n"
            "np.save('ncomplex', a.astype('c8')); np.save('nbool', a > 0)\n"
            "with open('nv2.npy', 'wb') as f: np.lib.format.write_array(f, a, (2, 0))\n"
            "b = open('nu1.npy', 'rb').read()\n"
            "open('nhead.npy', 'wb').write(b[:40])\n"
            "open('ncut.npy', 'wb').write(b'\\x93NUMPY\\x01\\x00\\x23\\x00' +\n"
            "    b\"{'fortran_order': False, 'descr': '\")\n"
            "open('nhuge.npy', 'wb').write(b.replace(b'(6, 4, 5)', b'(6, 99999, 4294967296)'))\n"));
    TEST(tap, ".npy of every type and both byte orders, versions 1 and 2", {
        static const char *const names[] = {"u1",  "li2", "bi2", "lu2", "li4", "bi4", "li8",
                                            "lu8", "lf2", "lf4", "bf4", "lf8", "bf8", "v2"};
        for (int i = 0; i < 14; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%s.npy", names[i]);
            if (!gives(in(folder, name), NULL, &gray))
                FAIL(tap, "%s", name);
        }
        CHECK(tap, gives(in(folder, "nrgb.npy"), NULL, &rgb));
        CHECK(tap, gives(in(folder, "nflat.npy"), NULL, &flat));
        char labels[SCRATCH_PATH + 32];
        snprintf(labels, sizeof labels, "%s/nlabels.npy", folder);
        gray.class = "%d";
        gray.same_labels = true;
        CHECK(tap, gives(in(folder, "nu1.npy"), &(struct source_options){.labels = labels}, &gray));
    });
    TEST(tap, ".npy that cannot be read is refused with the reason", {
        CHECK(tap, says("nfortran.npy", NULL, "in Fortran order"));
        CHECK(tap, says("ncomplex.npy", NULL, "values of type '<c8'"));
        CHECK(tap, says("nlabels.npy", NULL, "holds labels and no pictures"));
        CHECK(tap, says("nhead.npy", NULL, "ends within its header"));
        // The header ends within the type.
        CHECK(tap, says("ncut.npy", NULL, "values of type"));
        CHECK(tap, says("nhuge.npy", NULL, "nhuge.npy: "));
    });
}

static void test_cifar(struct tap *tap) {
    struct wanted ten = {6, 3, 32, 32, "%07d", "%d", false};
    CHECK(tap,
          python(folder, FORMULA
                 "def planes(i): return pic(i, 32, 32, 3).transpose(2, 0, 1).tobytes()\n"
                 "open('ten.bin', 'wb').write(b''.join(bytes([i * 3 % 4]) + planes(i) for i in "
                 "range(6)))\n"
                 "open('hundred.bin', 'wb').write(b''.join(bytes([19 - i, 90 + i]) + planes(i)\n"
                 "    for i in range(6)))\n"
                 "b = open('ten.bin', 'rb').read()\n"
                 "open('cut.bin', 'wb').write(b[:5000])\n"
                 "open('bad.bin', 'wb').write(b[:3073] + b'\\x0b' + b[3074:])\n"));
    TEST(tap, "CIFAR-10 and CIFAR-100, fine and coarse, have the names of their classes", {
        struct account account = account_of(in(folder, "ten.bin"), NULL);
        CHECK(tap, !strncmp(account.text, "0000000 airplane 3x32x32 u8", 27));
        CHECK(tap, strstr(account.text, "\n0000001 cat 3x32x32") != NULL);
        account_free(&account);
        account = account_of(in(folder, "hundred.bin"), NULL);
        CHECK(tap, !strncmp(account.text, "0000000 train 3x32x32 u8", 24));
        CHECK(tap, strstr(account.text, "\n0000005 whale ") != NULL);
        account_free(&account);
        account = account_of(in(folder, "hundred.bin"),
                             &(struct source_options){.from = "cifar100-coarse"});
        CHECK(tap, !strncmp(account.text, "0000000 vehicles_2 3x32x32 u8", 29));
        account_free(&account);
    });
    TEST(tap, "CIFAR pixels are those of its planes", {
        struct classes classes = {0};
        struct source *source;
        struct error err = {0};
        ten.class = NULL;
        struct source_options no = {.label_from = LABEL_NO};
        CHECK_INT(tap, source_open(&source, in(folder, "ten.bin"), &no, &classes, &err), 0);
        CHECK(tap, source_is(source, &classes, &ten));
        source_close(source);
        CHECK(tap, gives(in(folder, "hundred.bin"), &no, &ten));
        classes_free(&classes);
    });
    TEST(tap, "CIFAR that is cut off, or has a label out of bounds, says so", {
        struct source_options from = {.from = "cifar10"};
        CHECK(tap, says("cut.bin", &from, "ends within record 1, at offset 5000"));
        CHECK(tap, says("bad.bin", &from, "label 11, of 10 classes"));
    });
}

// What a source told the user.
struct told {
    int lines;
    char last[512];
};

static void hear(void *self, const char *text) {
    struct told *told = self;
    told->lines++;
    snprintf(told->last, sizeof told->last, "%s", text);
}

// Whether reading gives these samples and reports, and nothing else: each as "KEY CLASS", or as
// "MEMBER: REASON".
static bool has_samples(const char *name, const char *wanted) {
    struct account account = account_of(in(folder, name), NULL);
    char got[1024] = "";
    size_t n = 0;
    for (char *at = account.text, *line; (line = strsep(&at, "\n")) && *line;) {
        char *shape = strstr(line, " 1x");
        if (shape)
            *shape = 0;
        char *report = strncmp(line, "skipped ", 8) ? NULL : strstr(line, ".tar: ");
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%s", n ? "," : "",
                              report ? report + 6 : line);
    }
    bool same = !account.status && !strcmp(got, wanted);
    if (!same)
        printf("# %s gives %s\n", name, got);
    account_free(&account);
    return same;
}

#define LACKS(key) key ": has no picture of its own, only parts or a class"

static void test_tar(struct tap *tap) {
    struct wanted named = {6, 1, 4, 5, "s/%03d", "class %d", false}, numbered = named;
    struct wanted parent = named, rgb = named;
    numbered.class = "%d";
    numbered.same_labels = true;
    parent.key = "top/x/%03d";
    parent.class = "x";
    rgb.channels = 3;
    CHECK(
        tap,
        python(
            folder, FORMULA
            "def tar(name, fill, mode='w', **kw):\n"
            "    with tarfile.open(name, mode, **kw) as t: fill(t)\n"
            "def webds(text, c=1):\n"
            "    def fill(t):\n"
            "        for i in range(6):\n"
            "            member(t, 's/%03d.cls' % i, (text % (i * 3 % 4)).encode())\n"
            "            member(t, 's/%03d.json' % i, b'{}')\n"
            "            member(t, 's/%03d.png' % i, png(i, 4, 5, c))\n"
            "    return fill\n"
            "tar('named.tar', webds('class %d\\n')); tar('pax.tar', webds('class %d'), format=2)\n"
            "tar('gnu.tar', webds('class %d', 3), format=1)\n"
            "tar('numbered.tar', webds('%d')); tar('named.tgz', webds('class %d'), 'w:gz')\n"
            "def folders(t):\n"
            "    m = tarfile.TarInfo('./top/x'); m.type = tarfile.DIRTYPE; t.addfile(m)\n"
            "    for i in range(6): member(t, './top/x/%03d.png' % i, png(i, 4, 5, 1))\n"
            "    member(t, './top/README.md', b'hello'); member(t, './top/x/._000.png', b'apple')\n"
            "tar('folders.tar', folders)\n"
            "def unsorted(t):\n"
            "    for i in range(3): member(t, 's/%03d.png' % i, png(i, 4, 5, 1))\n"
            "    for i in range(3): member(t, 's/%03d.cls' % i, b'1')\n"
            "tar('unsorted.tar', unsorted)\n"
            "def long(t): member(t, 'd/' * 120 + 'k.png', png(0, 4, 5, 1))\n"
            "tar('long.tar', long, format=1); tar('longpax.tar', long, format=2)\n"
            "tar('utf8.tar', lambda t: member(t, 'caf\\u00e9/k.png', png(0, 4, 5, 1)), format=2)\n"
            "two = open('named.tar', 'rb').read() + open('folders.tar', 'rb').read()\n"
            "open('two.tar', 'wb').write(two)\n"
            "tar('nothing.tar', lambda t: member(t, 'a/data_batch_1.bin', b'x'))\n"
            "tar('zeros.tar', lambda t: (member(t, '1.cls', b'007'), member(t, '1.png', png(0, 1, "
            "1, 1))))\n"
            "def names(name, *names):\n"
            "    def fill(t):\n"
            "        for i, n in enumerate(names):\n"
            "            cls = n.endswith('.cls')\n"
            "            member(t, n, n.split('.')[-2].encode() if cls else png(i, 4, 5, 1))\n"
            "    tar(name, fill)\n"
            "names('dots.tar', 'cat/photo.1.png', 'cat/photo.2.png', 'dog/x.png', "
            "'dog/a.b.c.JPG')\n"
            "names('dotted.tar', 'a.x.cls', 'a.x.png', 'a.y.png', 'a.y.cls')\n"
            "names('many.tar', *['m/f.%03d.png' % i for i in range(100)], 'm/f.png', 'm/f.x.png')\n"
            "names('parts.tar', 's/one.depth.png', 's/one.cls', 's/one.mask.png', 's/one.png',\n"
            "    's/one.seg.png', 's/two.json', 's/two.png', 's/two.seg.png', 's/two.seg.json',\n"
            "    's/three.depth.png', 's/three.png', 'views.json', 'views.0.png', 'views.1.png',\n"
            "    'b.0.png', 'b.1.png')\n"
            "names('views.tar', 'views.0.png', 'views.1.png', 'views.json')\n"
            "names('lacking.tar', 'a.json', 'a.left.png', 'a.right.png', 'b.cls', 'c.png',\n"
            "    'd.left.png', 'd.cls', 'e.png', 'e.cls')\n"
            "for i, n in enumerate((('a.png', 'b.png', 'a.seg.png'),\n"
            "                       ('a.seg.png', 'b.png', 'a.png'),\n"
            "                       ('a.seg.png', 'b.png', 'a.cls'),\n"
            "                       ('a.json', 'b.json', 'a.seg.png'),\n"
            "                       ('a.seg.png', 'b.png', 'a.json'),\n"
            "                       ('a.json', 'a.seg.png', 'a.png', 'b.png', 'a.mask.png'))):\n"
            "    names('far%d.tar' % i, *n)\n"
            "names('near.tar', 'a.seg.png', 'a.png', 'b.png', 'c.1.png', 'b.json', 'a.json',\n"
            "    'c.2.png')\n"
            "def order(t):\n"
            "    for i, n in enumerate(('1.png', '2.png', '3.jpg', '3.png', '3.PNG', '3.cls', "
            "'../4.png',\n"
            "                           '../4.cls', '5.png', '6.png', '6.cls', '7.png', "
            "'7.original', 'x')):\n"
            "        bad = {'2.png': tarfile.SYMTYPE, '6.cls': tarfile.LNKTYPE,\n"
            "               '7.original': tarfile.LNKTYPE, 'x': tarfile.SYMTYPE}\n"
            "        if n in bad: member(t, n, b'', type=bad[n], linkname='1.png')\n"
            "        else: member(t, n, b'three' if 'cls' in n else png(i, 4, 5, 1))\n"
            "tar('order.tar', order)\n"
            "def spoilt(t):\n"
            "    for i, n in enumerate(('1', '2', '3')):\n"
            "        member(t, 'k/p.%s.png' % n, b'' if n == '3' else png(i, 4, 5, 1))\n"
            "    member(t, 'k/p.4.png', png(3, 4, 5, 1))\n"
            "tar('spoilt.tar', spoilt)\n"
            "def texts(name, *members):\n"
            "    def fill(t):\n"
            "        for i, (n, text) in enumerate(members):\n"
            "            member(t, n, text.encode() if text is not None else png(i, 4, 5, 1))\n"
            "    tar(name, fill)\n"
            "texts('empty.tar', ('d/1.cls', ''), ('d/1.png', None), ('d/2.png', None),\n"
            "    ('d/3.cls', '\\n'), ('d/3.png', None))\n"
            "ends = ('cat', 'cat\\n', 'cat\\r\\n', 'cat ', ' cat', 'cat \\n', 'cat\\n\\n', '7 ')\n"
            "texts('ends.tar', *[m for i, text in enumerate(ends)\n"
            "                   for m in (('%d.cls' % i, text), ('%d.png' % i, None))])\n"
            "texts('captions.tar', ('d/1.png', None), ('d/1.txt', 'a cat'), ('d/2.cls', 'dog'),\n"
            "    ('d/2.png', None), ('d/2.txt', 'a dog'), ('3.png', None), ('3.txt', 'a cow'))\n"
            "open('none', 'wb')\n"));
    TEST(tap, "a text beside a picture is a caption and no class",
         { CHECK(tap, has_samples("captions.tar", "d/1 d,d/2 dog,3 -")); });
    TEST(tap, "an empty .cls is no class",
         { CHECK(tap, has_samples("empty.tar", "d/1 -,d/2 d,d/3 -")); });
    TEST(tap, "of a .cls the end of its line is taken off, and no other space", {
        CHECK(tap, says("ends.tar", NULL, "1 cat 1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "2 cat 1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "3 cat  1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "4  cat 1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "5 cat  1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "6 cat 1x4x5"));
        CHECK(tap, says("ends.tar", NULL, "7 7  1x4x5"));
    });
    TEST(tap, "tar with key.png and key.cls: names, numbers, every dialect", {
        CHECK(tap, gives(in(folder, "named.tar"), NULL, &named));
        CHECK(tap, gives(in(folder, "pax.tar"), NULL, &named));
        CHECK(tap, gives(in(folder, "gnu.tar"), NULL, &rgb));
        CHECK(tap, gives(in(folder, "numbered.tar"), NULL, &numbered));
    });
    TEST(tap, "tar is read from gzip, zstd and xz", {
        CHECK(tap, gives(in(folder, "named.tgz"), NULL, &named));
        CHECK_INT(tap, shell(folder, "zstd -q named.tar; xz -k named.tar"), 0);
        CHECK(tap, gives(in(folder, "named.tar.zst"), NULL, &named));
        CHECK(tap, gives(in(folder, "named.tar.xz"), NULL, &named));
    });
    TEST(tap, "without labels the parent folder is the class; other members are no samples", {
        CHECK(tap, gives(in(folder, "folders.tar"), NULL, &parent));
        struct source_options from = {.label_from = LABEL_PARENT};
        struct account account = account_of(in(folder, "named.tar"), &from);
        CHECK(tap, !strncmp(account.text, "s/000 s 1x4x5 u8 ", 17));
        account_free(&account);
    });
    TEST(tap, "a picture with dots in its name is a sample, unless its key has parts without", {
        CHECK(tap,
              has_samples("dots.tar", "cat/photo.1 cat,cat/photo.2 cat,dog/x dog,dog/a.b.c dog"));
        CHECK(tap, has_samples("dotted.tar", "a.x x,a.y y"));
        CHECK(tap, has_samples("parts.tar",
                               "s/one s/one,s/two s,s/three s," LACKS("views") ",b.0 -,b.1 -"));
        CHECK(tap, has_samples("near.tar", "a -,b -,c.1 -,c.2 -"));
        struct account account = account_of(in(folder, "many.tar"), NULL);
        CHECK_INT(tap, account.samples, 102);
        CHECK(tap, strstr(account.text, "\nm/f m 1x4x5") && strstr(account.text, "\nm/f.x m 1x4"));
        account_free(&account);
    });
    TEST(tap, "what is bad among them is told in its place", {
        struct account account = account_of(in(folder, "spoilt.tar"), NULL);
        const char *two = strstr(account.text, "\nk/p.2 k"),
                   *bad = strstr(account.text, "is empty");
        const char *four = strstr(account.text, "\nk/p.4 k");
        CHECK(tap, two && bad && four && two < bad && bad < four);
        CHECK_INT(tap, account.samples, 3);
        CHECK_INT(tap, account.skipped, 1);
        account_free(&account);
    });
    TEST(tap, "samples of which there are a class or parts, but no picture, are missing", {
        CHECK(tap, has_samples("lacking.tar", LACKS("a") "," LACKS("b") ",c -," LACKS("d") ",e e"));
        struct account account = account_of(in(folder, "lacking.tar"), NULL);
        CHECK_INT(tap, account.skipped, 3);
        account_free(&account);
    });
    TEST(tap, "members of a group that was left are refused where they change what it is", {
        for (int i = 0; i < 6; i++) {
            char name[16];
            snprintf(name, sizeof name, "far%d.tar", i);
            CHECK(tap, says(name, NULL, ": its key comes back after another key"));
        }
    });
    TEST(tap, "what cannot be read is told in its place, once for a sample", {
        CHECK(tap, has_samples("order.tar", "1 -,"
                                            "2.png: at offset 1024: is a symbolic link,"
                                            "3 three,"
                                            "3.png: at offset 2560: a second picture for its key,"
                                            "../4.png: at offset 5632: a name with '..' in it,"
                                            "5 -,"
                                            "6.png: its member .cls is a hard link,"
                                            "x: at offset 11776: is a symbolic link,"
                                            "7.png: its member .original is a hard link"));
        struct account account = account_of(in(folder, "order.tar"), NULL);
        CHECK_INT(tap, account.skipped, 6);
        account_free(&account);
    });
    TEST(tap, "pictures that are parts of another's key are counted, and one is named", {
        struct told told = {0};
        struct source_options options = {.hooks = {&told, NULL, hear}};
        struct account account = account_of(in(folder, "parts.tar"), &options);
        CHECK_INT(tap, account.samples, 5);
        CHECK_INT(tap, told.lines, 1);
        CHECK(tap, strstr(told.last, "parts.tar: 7 pictures such as s/one.depth.png"));
        account_free(&account);
        CHECK(tap, says("views.tar", NULL, "but parts of samples, such as views.0.png"));
        told.lines = 0;
        account = account_of(in(folder, "dots.tar"), &options);
        CHECK_INT(tap, told.lines, 0);
        account_free(&account);
    });
    TEST(tap, "archives joined with cat are read one behind the other", {
        struct account account = account_of(in(folder, "two.tar"), NULL);
        CHECK_INT(tap, account.samples, 12);
        CHECK_INT(tap, account.status, STATUS_OK);
        account_free(&account);
    });
    TEST(tap, "an archive without pictures, and compressed nothing, are refused", {
        CHECK_INT(tap, shell(folder, "zstd -q none -o none.zst; gzip -k none; xz -k none"), 0);
        CHECK(tap, says("nothing.tar", NULL, "nothing.tar: no pictures in this archive"));
        CHECK(tap, says("none.zst", NULL, "none.zst: is empty"));
        CHECK(tap, says("none.gz", NULL, "none.gz: is empty"));
        CHECK(tap, says("none.xz", NULL, "none.xz: is empty"));
        CHECK(tap, says("zeros.tar", NULL, "1 007 1x1x1 u8"));
    });
    TEST(tap, "names that are long or not ASCII come through", {
        struct account a = account_of(in(folder, "long.tar"), NULL);
        struct account b = account_of(in(folder, "longpax.tar"), NULL);
        CHECK_TEXT(tap, a.text, b.text);
        CHECK_INT(tap, a.samples, 1);
        account_free(&a);
        account_free(&b);
        a = account_of(in(folder, "utf8.tar"), NULL);
        CHECK(tap, !strncmp(a.text, "caf\xc3\xa9/k caf\xc3\xa9 1x4x5", 18));
        account_free(&a);
    });
    TEST(tap, "a key that comes back is an error with archive, member and offset", {
        // Three pictures take two blocks each.
        CHECK(tap, says("unsorted.tar", NULL,
                        "unsorted.tar: member s/000.cls at offset 3072: its key comes back"));
    });
}

static void test_hostile_tar(struct tap *tap) {
    CHECK(tap,
          python(
              folder, FORMULA
              "p = png(0, 4, 5, 1)\n"
              "def tar(name, *members):\n"
              "    with tarfile.open(name, 'w', format=1) as t:\n"
              "        for m, kw in members: member(t, m, p if not kw.get('type') else b'', **kw)\n"
              "        member(t, 'good/last.png', p)\n"
              "tar('climb.tar', ('a/../../etc/x.png', {}))\n"
              "tar('abs.tar', ('/etc/abs.png', {}))\n"
              "tar('link.tar', ('l.png', dict(type=tarfile.SYMTYPE, linkname='/etc/passwd')),\n"
              "    ('h.png', dict(type=tarfile.LNKTYPE, linkname='good/last.png')),\n"
              "    ('dev/null.png', dict(type=tarfile.CHRTYPE)), ('f', "
              "dict(type=tarfile.FIFOTYPE)))\n"
              "tar('whole.tar')\n"
              "b = bytearray(open('whole.tar', 'rb').read())\n"
              "def size(name, field):\n"
              "    h = bytearray(b); h[124:136] = field; h[148:156] = b' ' * 8\n"
              "    h[148:156] = b'%06o\\0 ' % sum(h[:512]); open(name, 'wb').write(h)\n"
              "size('negative.tar', b'\\xff' * 12)\n"
              "size('base256.tar', b'\\x80' + b'\\0' * 3 + b'\\x7f' + b'\\xff' * 7)\n"
              "size('huge.tar', b'77777777777\\0')\n"
              "open('nomark.tar', 'wb').write(b[:1024])\n"
              "for n in 100, 512, 600, 1023: open('cut%d.tar' % n, 'wb').write(b[:n])\n"
              "import zlib\n"
              "tar('notpng.tar', ('z.png', {}))\n"
              "z = bytearray(open('notpng.tar', 'rb').read()); z[512:520] = b'garbage!'\n"
              "open('notpng.tar', 'wb').write(z)\n"));
    TEST(tap, "members that climb, links and devices are passed over by name", {
        CHECK(tap, says("climb.tar", NULL,
                        "climb.tar: a/../../etc/x.png: at offset 0: a name with '..'"));
        CHECK(tap, says("climb.tar", NULL, "\ngood/last good 1x4x5"));
        CHECK(tap, says("abs.tar", NULL, "etc/abs etc 1x4x5"));
        CHECK(tap, says("link.tar", NULL, "l.png: at offset 0: is a symbolic link"));
        CHECK(tap, says("link.tar", NULL, "h.png: at offset 512: is a hard link"));
        CHECK(tap, says("link.tar", NULL, "dev/null.png: at offset 1024: is a device"));
        CHECK(tap, says("link.tar", NULL, "f: at offset 1536: is a named pipe"));
        CHECK(tap, says("link.tar", NULL, "\ngood/last good 1x4x5"));
        CHECK(tap, says("notpng.tar", NULL, "z.png: at offset 0: neither JPEG, PNG nor PNM"));
    });
    TEST(tap, "sizes that are negative or absurd are refused", {
        struct source_options from = {.from = "tar"};
        static const char *const names[] = {"negative.tar", "base256.tar", "huge.tar"};
        for (int i = 0; i < 3; i++) {
            struct account account = account_of(in(folder, names[i]), &from);
            if (account.samples > 0 || account.skipped + (account.status != 0) == 0)
                FAIL(tap, "%s: %s", names[i], account.text);
            account_free(&account);
        }
    });
    TEST(tap, "an archive cut off anywhere says so", {
        static const int cuts[] = {100, 512, 600, 1023};
        for (int i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "cut%d.tar", cuts[i]);
            struct account account =
                account_of(in(folder, name), &(struct source_options){.from = "tar"});
            // From 600 on the picture is whole, and only the padding of its block is not.
            if (account.samples != (cuts[i] >= 600) || account.skipped + (account.status != 0) == 0)
                FAIL(tap, "%s: %s", name, account.text);
            account_free(&account);
        }
        CHECK(tap, says("nomark.tar", NULL, "the archive ends without its end mark"));
        CHECK(tap, says("nomark.tar", NULL, "good/last good 1x4x5"));
    });
    TEST(tap, "compressed data that is damaged or cut off is never silently wrong", {
        CHECK_INT(
            tap, shell(folder, "gzip -k whole.tar; zstd -q --check whole.tar; xz -k whole.tar"), 0);
        static const char *const names[] = {"whole.tar.gz", "whole.tar.zst", "whole.tar.xz"};
        struct account wanted = account_of(in(folder, "whole.tar"), NULL);
        for (int i = 0; i < 3; i++) {
            size_t size = 0;
            uint8_t *data = test_need(file_read(in(folder, names[i]), &size));
            for (size_t n = 0; n < size; n++) {
                file_write(in(folder, "cut"), data, n);
                struct account account = account_of(in(folder, "cut"), NULL);
                if (account.status == STATUS_OK && account.skipped == 0)
                    FAIL(tap, "%s cut at %zu: no complaint", names[i], n);
                account_free(&account);
                data[n] ^= 0x10;
                file_write(in(folder, "cut"), data, size);
                account = account_of(in(folder, "cut"), NULL);
                if (account.status == STATUS_OK && strcmp(account.text, wanted.text) != 0)
                    FAIL(tap, "%s changed at %zu: %s", names[i], n, account.text);
                account_free(&account);
                data[n] ^= 0x10;
            }
            free(data);
        }
        account_free(&wanted);
    });
}

static void test_folder(struct tap *tap) {
    CHECK(
        tap,
        python(
            folder, FORMULA
            "def put(path, data):\n"
            "    os.makedirs(os.path.dirname(path), exist_ok=True); open(path, 'wb').write(data)\n"
            "put('p/dog/a.png', png(0, 4, 5, 1)); put('p/cat/deep/er/b.png', png(1, 4, 5, 1))\n"
            "put('p/cat/c.PNG', png(2, 4, 5, 1)); put('p/cat/notes.txt', b'no picture')\n"
            "put('p/cat/c.pgm', b'P5 5 4 255\\n' + pic(3, 4, 5, 1).tobytes())\n"
            "put('p/.hidden/x.png', png(0, 4, 5, 1)); put('p/loose.png', png(4, 4, 5, 1))\n"
            "put('p/dog/broken.jpg', b'not a picture'); put('p/dog/empty.png', b'')\n"
            "put('p/dog/old.gif', b'GIF89a...'); os.symlink('nowhere', 'p/dog/gone.png')\n"
            "put('q/zebra/1.png', png(0, 4, 5, 1)); put('q/ant/1.png', png(1, 4, 5, 1))\n"
            "put('q/classes.txt', b'zebra\\nant\\nunseen\\n')\n"
            "for n in ('x.jpg', 'x.png', 'x.png.jpg', 'x.png.jpg.ppm'):\n"
            "    put('side/c/' + n, png(0, 4, 5, 1))\n"
            "put('twice/classes.txt', b'a\\nb\\na\\n'); put('twice/a/1.png', png(0, 4, 5, 1))\n"
            "os.makedirs('bare/sub'); os.makedirs('loop/a'); os.symlink('..', 'loop/a/b')\n"));
    TEST(tap, "a folder per class: sorted, nested, hidden ones left out, bad files named", {
        struct account account = account_of(in(folder, "p"), NULL);
        static const char *const starts[] = {"cat/c cat 1x4x5 u8 ", "cat/c.pgm cat 1x4x5 u8 ",
                                             "cat/deep/er/b cat 1x4x5 u8 ", "dog/a dog 1x4x5 u8 ",
                                             "loose - 1x4x5 u8 "};
        const char *at = account.text;
        for (int i = 0; i < 5; i++) {
            const char *found = strstr(at, starts[i]);
            if (!found)
                FAIL(tap, "no '%s' in its place in %s", starts[i], account.text);
            at = found ? found : at;
        }
        CHECK_INT(tap, account.samples, 5);
        CHECK_INT(tap, account.skipped, 4);
        CHECK(tap, strstr(account.text, "/p/dog/broken.jpg: neither JPEG, PNG nor PNM") != NULL);
        CHECK(tap, strstr(account.text, "/p/dog/empty.png: is empty") != NULL);
        CHECK(tap, strstr(account.text, "/p/dog/old.gif: neither") != NULL);
        CHECK(tap, strstr(account.text, "gone.png: No such file") != NULL);
        account_free(&account);
    });
    TEST(tap, "keys are unique, whatever extensions stand side by side",
         { CHECK(tap, has_samples("side", "c/x c,c/x.png c,c/x.png.jpg c,c/x.png.jpg.ppm c")); });
    TEST(tap, "classes.txt in the folder gives the order of the labels", {
        struct classes classes = {0};
        struct source *source;
        struct error err = {0};
        CHECK_INT(tap, source_open(&source, in(folder, "q"), NULL, &classes, &err), STATUS_OK);
        CHECK_INT(tap, classes.count, 3);
        CHECK_TEXT(tap, classes.names[0], "zebra");
        CHECK_INT(tap, source_count(source), 2);
        CHECK_TEXT(tap, source_kind(source), "folder");
        source_close(source);
        classes_free(&classes);
        CHECK(tap, says("twice", NULL, "classes.txt:3: class 'a' comes twice"));
    });
    TEST(tap, "a folder without pictures, or in a circle, is refused", {
        CHECK(tap, says("bare", NULL, "failed 65: "));
        CHECK(tap, says("loop", NULL, "failed "));
        CHECK(tap, says("nosuch", NULL, "failed 66: cannot open"));
    });
}

static void test_list(struct tap *tap) {
    TEST(tap, "a list of paths: lines or zeros, labels by parent, column or none", {
        CHECK_INT(tap,
                  shell(folder, "printf '%s\\n' \"$PWD/p/dog/a.png\" '' \"$PWD/p/no.png\" >lines;"
                                "printf '%s\\0' \"$PWD/p/dog/a.png\" \"$PWD/p/cat/c.PNG\" >zeros;"
                                "printf '%s\\t%s\\r\\n' \"$PWD/p/dog/a.png\" 'a class' >column;"
                                "printf '%s' \"$PWD/p/dog/a.png\" >>column"),
                  0);
        struct source_options list = {.from = "list", .separator = '\n'};
        CHECK(tap, says("lines", &list, "p/dog/a - 1x4x5"));
        CHECK(tap, says("lines", &list, "p/no.png: cannot open"));
        list.label_from = LABEL_COLUMN;
        CHECK(tap, says("column", &list, "p/dog/a a class 1x4x5"));
        CHECK(tap, says("column", &list, "no tab and class name"));
        list = (struct source_options){.from = "list", .label_from = LABEL_PARENT};
        CHECK(tap, says("zeros", &list, "p/dog/a dog 1x4x5"));
        CHECK(tap, says("zeros", &list, "p/cat/c cat 1x4x5"));
        list.separator = '\n';
        CHECK(tap, says("zeros", &list, "zeros:1: a zero byte in a path"));
    });
}

static void test_pnm(struct tap *tap) {
    struct wanted stream = {6, 1, 4, 5, "%07d", NULL, false};
    CHECK(tap,
          python(folder, FORMULA
                 "raw = b''.join(b'P5 5 4 255\\n' + pic(i, 4, 5, 1).tobytes() for i in range(6))\n"
                 "open('raw.pnm', 'wb').write(raw); open('cut.pnm', 'wb').write(raw[:-1])\n"
                 "open('plain.pnm', 'w').write(''.join('P2 5 4 255\\n' +\n"
                 "    '\\n'.join(map(str, pic(i, 4, 5, 1).ravel())) + '\\n' for i in range(6)))\n"
                 "open('one.png', 'wb').write(png(0, 4, 5, 1)); open('zero', 'wb')\n"
                 "open('what', 'wb').write(b'hello')\n"));
    TEST(tap, "a stream of PNM pictures, raw and plain, and a single picture", {
        CHECK(tap, gives(in(folder, "raw.pnm"), NULL, &stream));
        CHECK(tap, gives(in(folder, "plain.pnm"), NULL, &stream));
        CHECK(tap, says("cut.pnm", NULL, "cut.pnm: picture 5, at offset 155: "));
        CHECK(tap, says("one.png", NULL, "one - 1x4x5"));
    });
    TEST(tap, "what is empty or of no known kind is refused, and a kind misspelt", {
        CHECK(tap, says("zero", NULL, "zero: is empty"));
        CHECK(tap, says("what", NULL, "--from KIND says what it is"));
        CHECK(tap, says("what", &(struct source_options){.from = "tra"}, "did you mean 'tar'?"));
        CHECK(tap, says("p", &(struct source_options){.from = "tar"}, "is a folder, not tar"));
    });
}

static void test_failing_read(struct tap *tap) {
    TEST(tap, "a read that fails is an I/O error and names the file", {
        // Reading the memory of a process at 0 fails with EIO.
        struct account account = account_of("/proc/self/mem", NULL);
        CHECK_INT(tap, account.status, STATUS_IO);
        CHECK(tap, strstr(account.text, "cannot read /proc/self/mem") != NULL);
        account_free(&account);
    });
}

// The most memory that reading a source takes, in KiB: of a child of its own.
static long peak_memory(const char *path) {
    struct rusage usage = {0};
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct classes classes = {0};
        struct sample sample = {0};
        struct source *source;
        bool more = true;
        if (source_open(&source, path, NULL, &classes, NULL))
            _exit(1);
        while (more)
            if (source_next(source, &sample, &more, NULL))
                _exit(1);
        _exit(0);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) < 0 || status != 0)
        return -1;
    return usage.ru_maxrss;
}

static void test_memory(struct tap *tap) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("ok %d - memory does not grow # skip a sanitizer keeps what was freed\n", ++tap->tests);
    return;
#endif
    TEST(tap, "memory does not grow with the length of the stream", {
        struct made made = {.channels = 3, .height = 64, .width = 64, .classes = 10};
        struct error err = {0};
        static const char *const names[] = {"m.arec", "m.tar", "m.npy", "m.arec.gz"};
        for (int i = 0; i < 4; i++) {
            struct sink_options force = {.force = true};
            made.count = 20;
            CHECK_INT(tap, made_write(in(folder, names[i]), &force, &made, NULL, &err), STATUS_OK);
            long few = peak_memory(in(folder, names[i]));
            made.count = 1500; // 18 MB
            CHECK_INT(tap, made_write(in(folder, names[i]), &force, &made, NULL, &err), STATUS_OK);
            long many = peak_memory(in(folder, names[i]));
            if (few < 0 || many < 0 || many - few > 4096)
                FAIL(tap, "%s: %ld KiB for 20 samples, %ld for 1500", names[i], few, many);
        }
    });
}

static const char *real_data(const char *name, char path[SCRATCH_PATH]) {
    const char *set = getenv("ADAM_DATA");
    snprintf(path, SCRATCH_PATH, "%s/%s", set ? set : "../shared/data", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

static void test_real(struct tap *tap) {
    char path[SCRATCH_PATH];
    if (!real_data("mnist/t10k-images-idx3-ubyte.gz", path)) {
        printf("ok %d - MNIST as it is published # skip no data\n", ++tap->tests);
    } else {
        TEST(tap, "MNIST as it is published", {
            struct account account = account_of(path, NULL);
            CHECK_INT(tap, account.samples, 10000);
            CHECK_INT(tap, account.status, STATUS_OK);
            CHECK(tap, !strncmp(account.text, "0000000 7 1x28x28 u8 ", 21));
            account_free(&account);
        });
    }
    if (!real_data("cifar10-test.tar", path)) {
        printf("ok %d - a tar with a folder per class # skip no data\n", ++tap->tests);
    } else {
        TEST(tap, "a tar with a folder per class", {
            struct account account = account_of(path, NULL);
            CHECK_INT(tap, account.samples, 10000);
            CHECK_INT(tap, account.skipped + (size_t)account.status, 0);
            CHECK(tap, strstr(account.text, "test/truck/0999 truck 3x32x32 u8 ") != NULL);
            account_free(&account);
        });
    }
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    test_memory(&tap);
    test_idx(&tap);
    test_npy(&tap);
    test_cifar(&tap);
    test_tar(&tap);
    test_hostile_tar(&tap);
    test_folder(&tap);
    test_list(&tap);
    test_pnm(&tap);
    test_failing_read(&tap);
    test_real(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
