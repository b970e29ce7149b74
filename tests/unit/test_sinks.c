// Every kind of output: read again by our sources and by other hands (Python's
// tarfile, gzip, numpy and PIL), complete or not there at all.
#include <sys/stat.h>

#include "../helper/samples.h"
#include "../helper/tap.h"
#include "core/error.h"

static char folder[SCRATCH_PATH];

static const struct sink_options force = {.force = true};

static void test_round_trips(struct tap *tap) {
    static const struct made gray = {4, 1, 6, 5, PIXEL_U8, 2, true, false};
    static const struct made named = {4, 3, 6, 5, PIXEL_U8, 3, false, true};
    static const struct made few = {3, 3, 6, 5, PIXEL_U8, 3, false, true};
    static const struct made none = {4, 1, 6, 5, PIXEL_U8, 0, false, false};
    static const struct made deep = {4, 7, 2, 3, PIXEL_F32, 2, true, false};
    static const struct {
        const char *name;
        const struct made *made;
    } trips[] = {
        {"g.arec", &gray},
        {"n.arec", &named},
        {"x.arec.gz", &none},
        {"f.arec.zst", &deep},
        {"g.tar", &gray},
        {"n.tar.gz", &named},
        {"x.tar.zst", &named},
        {"n.tar.xz", &named},
        {"folder/", &few},
        {"g.idx", &gray},
        {"n-images-idx3-ubyte.gz", &gray},
        {"d.idx", &deep},
        {"g.npy", &gray},
        {"d.npy", &deep},
        {"x.npy.gz", &none},
        {"x.pnm", &none},
        {"x.idx", &none},
    };
    TEST(tap, "what each kind can hold comes back the same", {
        for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
            struct account wanted = {0};
            struct error err = {0};
            if (made_write(in(folder, trips[i].name), NULL, trips[i].made, &wanted, &err))
                FAIL(tap, "%s: %s", trips[i].name, err.text);
            struct account got = account_of(in(folder, trips[i].name), NULL);
            CHECK_TEXT(tap, got.text, wanted.text);
            account_free(&got);
            account_free(&wanted);
        }
    });
    TEST(tap, "the same samples give the same bytes", {
        for (size_t i = 0; i < sizeof trips / sizeof *trips; i++) {
            size_t size_a = 0, size_b = 0;
            struct error err = {0};
            const char *path = in(folder, trips[i].name);
            if (strchr(trips[i].name, '/'))
                continue;
            uint8_t *a = file_read(path, &size_a);
            CHECK_INT(tap, made_write(path, &force, trips[i].made, NULL, &err), STATUS_OK);
            uint8_t *b = file_read(path, &size_b);
            if (a && (size_a != size_b || memcmp(a, b, size_a) != 0))
                FAIL(tap, "%s differs", trips[i].name);
            free(a);
            free(b);
        }
    });
    TEST(tap, "nothing else is left behind",
         { CHECK_INT(tap, shell(folder, "test -z \"$(find . -name '*.tmp')\""), 0); });
}

static void test_other_hands(struct tap *tap) {
    struct error err = {0};
    struct made made = {5, 3, 4, 6, PIXEL_U8, 3, false, true};
    struct made numbers = {5, 1, 4, 6, PIXEL_U8, 3, true, false};
    struct made floats = {5, 1, 4, 6, PIXEL_F32, 3, true, false};
    CHECK_INT(tap, made_write(in(folder, "o.npy"), NULL, &made, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "o.tar.gz"), NULL, &made, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "o/"), NULL, &made, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "o.ppm"), NULL, &made, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "i.npy"), NULL, &numbers, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "i-images-idx3-ubyte.gz"), NULL, &numbers, NULL, &err), 0);
    CHECK_INT(tap, made_write(in(folder, "r.npy"), NULL, &floats, NULL, &err), STATUS_OK);
    CHECK_INT(tap, made_write(in(folder, "r.idx"), NULL, &floats, NULL, &err), STATUS_OK);
    TEST(tap, "numpy reads .npy, and Python's gzip reads IDX, with their labels", {
        CHECK(
            tap,
            python(folder,
                   "import numpy as np, gzip\n"
                   "a = np.load('o.npy'); assert a.shape == (5, 4, 6, 3) and a.dtype == np.uint8\n"
                   "assert list(np.load('o-labels.npy')) == [0, 1, 2, 0, 1]\n"
                   "i = np.load('i.npy'); d = gzip.open('i-images-idx3-ubyte.gz').read()\n"
                   "assert d[:16] == bytes([0,0,8,3, 0,0,0,5, 0,0,0,4, 0,0,0,6]) and d[16:] == "
                   "i.tobytes()\n"
                   "l = gzip.open('i-labels-idx1-ubyte.gz').read()\n"
                   "assert l == bytes([0,0,8,1, 0,0,0,5, 0,1,2,0,1])\n"
                   "r = np.load('r.npy'); d = open('r.idx', 'rb').read()\n"
                   "assert r.dtype == np.float32 and d[:4] == bytes([0,0,13,3])\n"
                   "assert (np.frombuffer(d[16:], '>f4').reshape(5, 4, 6) == r).all()\n"));
    });
    TEST(tap, "tarfile and PIL read the tar, with labels, fixed owner and time", {
        CHECK(tap,
              python(folder, "import numpy as np, tarfile, io\n"
                             "from PIL import Image\n"
                             "a = np.load('o.npy'); t = tarfile.open('o.tar.gz')\n"
                             "assert t.getnames()[:4] == ['c0/0000000.png', 'c0/0000000.cls',\n"
                             "                            'c1/0000001.png', 'c1/0000001.cls']\n"
                             "m = t.getmembers()[0]\n"
                             "assert (m.mtime, m.uid, m.gid, m.mode) == (0, 0, 0, 0o644)\n"
                             "assert t.extractfile('c2/0000002.cls').read() == b'c2'\n"
                             "for i in range(5):\n"
                             "    p = Image.open(io.BytesIO(t.extractfile('c%d/%07d.png' % (i % 3, "
                             "i)).read()))\n"
                             "    assert (np.array(p) == a[i]).all()\n"));
    });
    TEST(tap, "PIL reads the folder and the PNM stream", {
        CHECK(tap,
              python(folder,
                     "import numpy as np, os\n"
                     "from PIL import Image\n"
                     "a = np.load('o.npy')\n"
                     "assert open('o/classes.txt').read() == 'c0\\nc1\\nc2\\n'\n"
                     "assert sorted(os.listdir('o/c1')) == ['0000001.png', '0000004.png']\n"
                     "assert (np.array(Image.open('o/c1/0000004.png')) == a[4]).all()\n"
                     "assert (np.array(Image.open('o.ppm')) == a[0]).all()\n"
                     "assert os.path.getsize('o.ppm') == 5 * (len('P6\\n6 4\\n255\\n') + 72)\n"));
    });
}

static void test_encoded(struct tap *tap) {
    TEST(tap, "a picture that is encoded is kept as it is, or changed when asked", {
        CHECK(tap, python(folder, "from PIL import Image\nimport os\n"
                                  "os.makedirs('jpeg/a'); Image.new('RGB', (9, 7), (10, 200, "
                                  "30)).save('jpeg/a/1.jpg')\n"));
        struct source_options from = {0};
        static const struct sink_options as[] = {{0}, {.codec = CODEC_PNG}};
        for (int i = 0; i < 2; i++) {
            struct classes classes = {0};
            struct sample sample = {0};
            struct source *source;
            struct sink *sink;
            struct error err = {0};
            bool more;
            CHECK_INT(tap, source_open(&source, in(folder, "jpeg"), &from, &classes, &err), 0);
            CHECK_INT(tap, source_next(source, &sample, &more, &err), 0);
            CHECK_INT(
                tap,
                sink_open(&sink, in(folder, i ? "png.tar" : "jpg.tar"), &as[i], &classes, &err), 0);
            CHECK_INT(tap, sink_put(sink, &sample, &err), 0);
            CHECK_INT(tap, sink_close(sink, &err), 0);
            source_close(source);
            sample_free(&sample);
            classes_free(&classes);
        }
        CHECK_INT(tap,
                  shell(folder, "tar xOf jpg.tar a/1.jpg | cmp - jpeg/a/1.jpg;"
                                "tar xOf png.tar a/1.png | head -c 4 | grep -q PNG"),
                  0);
    });
}

// Puts one sample with this key and class; the status of put or close.
static int put_one(const char *name, const char *key, const char *class, struct error *err) {
    struct classes classes = {0};
    struct sample sample = {0};
    struct sink *sink;
    struct made made = {1, 1, 2, 2, PIXEL_U8, 0, false, false};
    int label, status = sink_open(&sink, in(folder, name), NULL, &classes, err);
    if (status)
        return status;
    made_sample(&sample, &made, &classes, 0);
    if (sample_key(&sample, key, err) || classes_label(&classes, class, &label, err))
        exit(2);
    sample.label = label;
    status = sink_put(sink, &sample, err);
    if (status)
        sink_abort(sink);
    else
        status = sink_close(sink, err);
    sample_free(&sample);
    classes_free(&classes);
    return status;
}

static void test_keys(struct tap *tap) {
    struct error err = {0};
    TEST(tap, "keys that would lead elsewhere become harmless names", {
        CHECK_INT(tap, put_one("k1/", "../../etc/x", "c", &err), STATUS_OK);
        CHECK_INT(tap, put_one("k2/", "/abs/x", "c", &err), STATUS_OK);
        CHECK_INT(tap, put_one("k3/", "c/.hidden", "c", &err), STATUS_OK);
        CHECK_INT(tap, put_one("k4.tar", "../a/../b.c", "c", &err), STATUS_OK);
        CHECK_INT(tap,
                  shell(folder, "test -e k1/c/_._.._etc_x.png; test -e k2/c/abs_x.png;"
                                "test -e k3/c/_hidden.png; tar tf k4.tar >names;"
                                "grep -qx '_./a/_./b_c.png' names"),
                  0);
    });
    TEST(tap, "a class that cannot be a folder is refused", {
        CHECK_INT(tap, put_one("k5/", "x", "..", &err), STATUS_DATA);
        CHECK_INT(tap, put_one("k6/", "x", "a/b", &err), STATUS_DATA);
        CHECK_INT(tap, shell(folder, "test ! -e k5; test ! -e k6"), 0);
    });
    TEST(tap, "a key that is too long for the name of a file is refused by a folder", {
        char key[300];
        memset(key, 'a', sizeof key);
        key[251] = 0;
        CHECK_INT(tap, put_one("k7/", key, "c", &err), STATUS_OK);
        key[251] = 'a', key[252] = 0;
        err = (struct error){0};
        CHECK_INT(tap, put_one("k8/", key, "c", &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, key) && strstr(err.text, "too long for the name of a file"));
        CHECK(tap, strstr(err.text, "/k8/: ") && !strstr(err.text, ".tmp"));
        CHECK_INT(tap, put_one("k8.tar", key, "c", &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "test ! -e k8; test -e k7"), 0);
    });
    TEST(tap, "a key that comes twice is refused in tar and folder", {
        static const char *const names[] = {"two.tar", "two/"};
        for (int i = 0; i < 2; i++) {
            struct classes classes = {0};
            struct sample sample = {0};
            struct sink *sink;
            struct made made = {1, 1, 2, 2, PIXEL_U8, 0, false, false};
            CHECK_INT(tap, sink_open(&sink, in(folder, names[i]), NULL, &classes, &err), 0);
            made_sample(&sample, &made, &classes, 0);
            CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
            CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_DATA);
            sink_abort(sink);
            sample_free(&sample);
        }
        CHECK_INT(tap, shell(folder, "test ! -e two.tar; test ! -e two"), 0);
    });
}

static void test_appearance(struct tap *tap) {
    static const struct made made = {3, 1, 4, 4, PIXEL_U8, 2, true, false};
    static const char *const names[] = {"e.arec", "e.tar", "e/", "e.idx", "e.npy", "e.pnm"};
    struct error err = {0};
    TEST(tap, "a name appears only when the output is complete", {
        for (int i = 0; i < 6; i++) {
            struct classes classes = {0};
            struct sample sample = {0};
            struct sink *sink;
            const char *path = in(folder, names[i]);
            CHECK_INT(tap, sink_open(&sink, path, NULL, &classes, &err), STATUS_OK);
            made_sample(&sample, &made, &classes, 0);
            CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
            if (access(path, F_OK) == 0)
                FAIL(tap, "%s is there too early", names[i]);
            CHECK_INT(tap, sink_close(sink, &err), STATUS_OK);
            if (access(path, F_OK) != 0)
                FAIL(tap, "%s is not there", names[i]);
            sample_free(&sample);
            classes_free(&classes);
        }
    });
    TEST(tap, "what exists is refused without force, and replaced with it", {
        for (int i = 0; i < 6; i++) {
            if (made_write(in(folder, names[i]), NULL, &made, NULL, &err) != STATUS_CANTCREATE)
                FAIL(tap, "%s was not refused", names[i]);
            if (made_write(in(folder, names[i]), &force, &made, NULL, &err))
                FAIL(tap, "%s: %s", names[i], err.text);
        }
    });
    TEST(tap, "a folder that was not made here is never replaced", {
        CHECK_INT(tap, shell(folder, "mkdir mine; touch mine/photo.jpg"), 0);
        CHECK_INT(tap, made_write(in(folder, "mine"), &force, &made, NULL, &err),
                  STATUS_CANTCREATE);
        CHECK_INT(tap, shell(folder, "test -e mine/photo.jpg; mkdir empty"), 0);
        CHECK_INT(tap, made_write(in(folder, "empty"), NULL, &made, NULL, &err), STATUS_OK);
    });
    TEST(tap, "a full disk is an I/O error, and devices are not renamed over", {
        struct made much = {200, 1, 64, 64, PIXEL_U8, 2, true, false};
        static const char *const kinds[] = {"arec", "tar", "pnm", "idx", "npy"};
        for (int i = 0; i < 5; i++) {
            struct sink_options to = {.to = kinds[i], .labels_out = i < 3 ? NULL : "/dev/full"};
            if (made_write("/dev/full", &to, &much, NULL, &err) != STATUS_IO)
                FAIL(tap, "%s: %d %s", kinds[i], err.status, err.text);
        }
        struct stat stat_of;
        CHECK(tap, stat("/dev/full", &stat_of) == 0 && S_ISCHR(stat_of.st_mode));
        CHECK_INT(tap,
                  made_write("/dev/null", &(struct sink_options){.to = "arec"}, &much, NULL, &err),
                  STATUS_OK);
        CHECK_INT(tap, made_write(in(folder, "no/such/x.arec"), NULL, &made, NULL, &err),
                  STATUS_CANTCREATE);
    });
    TEST(tap, "a name may be as long as the file system allows", {
        char name[256];
        snprintf(name, sizeof name, "%0250d.arec", 0);
        CHECK_INT(tap, made_write(in(folder, name), NULL, &made, NULL, &err), STATUS_OK);
    });
    TEST(tap, "a link is followed, and stays", {
        CHECK_INT(tap, shell(folder, "touch real.arec; ln -s real.arec link.arec"), 0);
        CHECK_INT(tap, made_write(in(folder, "link.arec"), &force, &made, NULL, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "test -L link.arec; test -s real.arec"), 0);
    });
}

// A folder takes the name of the pictures, so that the work ends where it would be placed.
static void end_before_pictures(struct tap *tap, const struct made *made) {
    struct classes classes = {0};
    struct sample sample = {0};
    struct sink *sink;
    struct error err = {0};
    CHECK_INT(tap, shell(folder, "rm -rf p.npy; echo old > p-labels.npy"), 0);
    CHECK_INT(tap, sink_open(&sink, in(folder, "p.npy"), &force, &classes, &err), STATUS_OK);
    made_sample(&sample, made, &classes, 0);
    CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
    CHECK_INT(tap, shell(folder, "mkdir p.npy"), 0);
    CHECK_INT(tap, sink_close(sink, &err), STATUS_CANTCREATE);
    sample_free(&sample);
    classes_free(&classes);
}

static void test_pairs(struct tap *tap) {
    static const struct made labelled = {3, 1, 4, 4, PIXEL_U8, 2, true, false};
    static const struct made bare = {3, 1, 4, 4, PIXEL_U8, 0, false, false};
    TEST(tap, "before pictures are replaced there are no labels, neither old nor new ones", {
        end_before_pictures(tap, &labelled);
        CHECK_INT(tap, shell(folder, "test ! -e p-labels.npy; test -z \"$(ls -A p.npy)\""), 0);
        end_before_pictures(tap, &bare);
        CHECK_INT(tap, shell(folder, "test ! -e p-labels.npy; rmdir p.npy"), 0);
    });
    TEST(tap, "a link to old labels is followed when there are new ones, else it goes", {
        struct error err = {0};
        CHECK_INT(tap, shell(folder, "echo old > l; ln -s l q-labels.npy"), 0);
        CHECK_INT(tap, made_write(in(folder, "q.npy"), &force, &labelled, NULL, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "test -L q-labels.npy; test $(stat -c %s l) -gt 100"), 0);
        CHECK_INT(tap, made_write(in(folder, "q.npy"), &force, &bare, NULL, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "test ! -e q-labels.npy; rm -f q-labels.npy q.npy l"), 0);
    });
}

static void test_refusals(struct tap *tap) {
    struct error err = {0};
    struct made made = {2, 1, 4, 4, PIXEL_U8, 0, false, false};
    TEST(tap, "a name that says no kind, and a kind misspelt, are usage errors", {
        CHECK_INT(tap, made_write(in(folder, "x.zip"), NULL, &made, NULL, &err), STATUS_USAGE);
        CHECK(tap, strstr(err.text, "--to KIND") != NULL);
        CHECK_INT(
            tap,
            made_write(in(folder, "x"), &(struct sink_options){.to = "rec"}, &made, NULL, &err),
            STATUS_USAGE);
        CHECK(tap, strstr(err.text, "did you mean 'arec'?") != NULL);
    });
    TEST(tap, "another shape in IDX, floats in PNG, labels above 255 in IDX are refused", {
        struct classes classes = {0};
        struct sample sample = {0};
        struct sink *sink;
        CHECK_INT(tap, sink_open(&sink, in(folder, "s.idx"), NULL, &classes, &err), STATUS_OK);
        made_sample(&sample, &made, &classes, 0);
        CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_OK);
        made.width = 5;
        made_sample(&sample, &made, &classes, 1);
        CHECK_INT(tap, sink_put(sink, &sample, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "1x4x5, the first was 1x4x4") != NULL);
        sink_abort(sink);
        sample_free(&sample);
        made.type = PIXEL_F32;
        CHECK_INT(tap, made_write(in(folder, "s.tar"), NULL, &made, NULL, &err), STATUS_DATA);
        struct made many = {257, 1, 1, 1, PIXEL_U8, 257, true, false};
        CHECK_INT(tap, made_write(in(folder, "m.idx"), NULL, &many, NULL, &err), STATUS_DATA);
        CHECK_INT(tap, made_write(in(folder, "m.npy"), NULL, &many, NULL, &err), STATUS_OK);
        CHECK_INT(tap, shell(folder, "test ! -e s.idx; test ! -e s.tar; test ! -e m.idx"), 0);
    });
}

int main(void) {
    struct tap tap = {0};
    scratch_make(folder);
    test_round_trips(&tap);
    test_other_hands(&tap);
    test_encoded(&tap);
    test_keys(&tap);
    test_appearance(&tap);
    test_pairs(&tap);
    test_refusals(&tap);
    scratch_remove(folder);
    return tap_done(&tap);
}
