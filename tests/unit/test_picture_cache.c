// The data server's pictures: the same from the cache as from the files, within its limit.
#include <stdlib.h>
#include <sys/stat.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "../helper/tempfile.h"
#include "core/error.h"
#include "core/random.h"
#include "deal/picture_cache.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE, FIRST = 7, SECOND = 4, ALL = FIRST + SECOND, CLASSES = 3 };
enum { PLENTY = 1 << 20 };

struct files {
    char images[2][TEMPFILE_PATH], labels[2][TEMPFILE_PATH + 8]; // found beside the images
    const char *paths[2];
};

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file))
        abort();
}

// A data set of n samples, which are numbered from `first` on.
static void write_set(struct files *files, int i, unsigned char n, unsigned char first) {
    unsigned char images[16 + ALL * PIXELS] = {0, 0, 8, 3,    0, 0, 0, n,
                                               0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + ALL] = {0, 0, 8, 1, 0, 0, 0, n};
    for (int s = 0; s < n; s++) {
        for (int p = 0; p < PIXELS; p++)
            images[16 + s * PIXELS + p] = (unsigned char)(first + s + 16 * p);
        labels[8 + s] = (unsigned char)((first + s) % CLASSES);
    }
    tempfile_write(files->images[i], images, 16 + (size_t)n * PIXELS);
    files->paths[i] = files->images[i];
    memcpy(files->labels[i], files->images[i], TEMPFILE_PATH);
    memcpy(files->labels[i] + strlen(files->images[i]), "-labels", sizeof "-labels");
    write_file(files->labels[i], labels, 8 + (size_t)n);
}

static void open_files(struct files *files) {
    write_set(files, 0, FIRST, 0);
    write_set(files, 1, SECOND, FIRST);
}

static void close_files(struct files *files) {
    for (int i = 0; i < 2; i++)
        unlink(files->images[i]), unlink(files->labels[i]);
}

static struct picture_cache *picture_cache_of(struct tap *tap, const struct files *files,
                                              size_t count, uint32_t part, uint32_t parts,
                                              uint64_t cache) {
    const struct picture_cache_options options = {
        .paths = files->paths, .path_count = count, .part = part, .parts = parts, .cache = cache};
    struct picture_cache *pictures = NULL;
    CHECK_INT(tap, picture_cache_open(&pictures, &options, NULL), STATUS_OK);
    return pictures;
}

// Whether it is sample `index` of both files, one behind the other.
static bool is_sample(const struct image *image, uint32_t index) {
    bool same = image->width == SIDE && image->height == SIDE && image->channels == 1;
    for (uint32_t p = 0; same && p < PIXELS; p++)
        same = image->u8[p] == (unsigned char)(index + 16 * p);
    return same;
}

// Goes over all pictures of the part, and gives the figures then.
static struct picture_cache_figures look(struct tap *tap, struct picture_cache *pictures) {
    struct image image = {0};
    for (uint32_t i = 0; i < picture_cache_count(pictures); i++) {
        if (image.data)
            memset(image.data, 0xee, image_bytes(&image));
        picture_cache_expect(pictures, i);
        CHECK_INT(tap, picture_cache_image(pictures, i, &image, NULL), STATUS_OK);
        CHECK(tap, is_sample(&image, picture_cache_first(pictures) + i));
        CHECK_INT(tap, picture_cache_label(pictures, i),
                  (picture_cache_first(pictures) + i) % CLASSES);
    }
    image_free(&image);
    return picture_cache_figures(pictures);
}

static void test_cache(struct tap *tap, const struct files *files) {
    TEST(tap, "pictures come from the files first, and from the cache from then on", {
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        uint64_t before[ALL];
        for (uint32_t i = 0; i < ALL; i++)
            before[i] = picture_cache_key_hash(pictures, i);
        struct picture_cache_figures figures = look(tap, pictures);
        CHECK_INT(tap, figures.misses, ALL);
        CHECK_INT(tap, figures.hits, 0);
        uint64_t bytes = figures.bytes;
        CHECK(tap, bytes >= ALL * PIXELS && bytes % ALL == 0);
        figures = look(tap, pictures);
        CHECK_INT(tap, figures.misses, ALL);
        CHECK_INT(tap, figures.hits, ALL);
        CHECK_INT(tap, figures.bytes, bytes);
        for (uint32_t i = 0; i < ALL; i++) {
            CHECK(tap, picture_cache_key_hash(pictures, i) == before[i]);
            CHECK(tap, i == 0 || before[i] != before[i - 1]);
        }
        picture_cache_close(pictures);
    });
    TEST(tap, "the cache takes no more than its limit, and then keeps what it has", {
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        uint64_t each = look(tap, pictures).bytes / ALL;
        picture_cache_close(pictures);
        pictures = picture_cache_of(tap, files, 2, 0, 0, 3 * each);
        CHECK_INT(tap, look(tap, pictures).bytes, 3 * each);
        struct picture_cache_figures figures = look(tap, pictures);
        CHECK_INT(tap, figures.hits, 3);
        CHECK_INT(tap, figures.misses, 2 * ALL - 3);
        CHECK_INT(tap, figures.bytes, 3 * each);
        picture_cache_close(pictures);
        pictures = picture_cache_of(tap, files, 2, 0, 0, each - 1);
        CHECK_INT(tap, look(tap, pictures).bytes, 0);
        picture_cache_close(pictures);
    });
}

static void test_warm(struct tap *tap, const struct files *files) {
    TEST(tap, "a cache is warmed picture by picture until all are in it", {
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        struct image image = {0};
        CHECK_INT(tap, picture_cache_image(pictures, 1, &image, NULL), STATUS_OK);
        int warmed = 0;
        while (picture_cache_warm(pictures, &image))
            warmed++;
        CHECK_INT(tap, warmed, ALL - 1);
        CHECK(tap, !picture_cache_warm(pictures, &image));
        struct picture_cache_figures figures = look(tap, pictures);
        CHECK_INT(tap, figures.hits, ALL);
        CHECK_INT(tap, figures.misses, 1);
        image_free(&image);
        picture_cache_close(pictures);
    });
    TEST(tap, "warming ends when the cache is full", {
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        uint64_t each = look(tap, pictures).bytes / ALL;
        picture_cache_close(pictures);
        pictures = picture_cache_of(tap, files, 2, 0, 0, 2 * each);
        struct image image = {0};
        CHECK(tap, picture_cache_warm(pictures, &image) && picture_cache_warm(pictures, &image));
        CHECK(tap, !picture_cache_warm(pictures, &image) && !picture_cache_warm(pictures, &image));
        CHECK_INT(tap, picture_cache_figures(pictures).bytes, 2 * each);
        image_free(&image);
        picture_cache_close(pictures);
    });
}

static void test_parts(struct tap *tap, const struct files *files) {
    TEST(tap, "parts are the whole: each sample is in one of them", {
        uint32_t next = 0;
        for (uint32_t part = 1; part <= 3; part++) {
            struct picture_cache *pictures = picture_cache_of(tap, files, 2, part, 3, PLENTY);
            CHECK_INT(tap, picture_cache_first(pictures), next);
            CHECK_INT(tap, picture_cache_whole(pictures), ALL);
            CHECK_INT(tap, picture_cache_count(pictures), ALL * part / 3 - next);
            next += picture_cache_count(pictures);
            look(tap, pictures);
            picture_cache_close(pictures);
        }
        CHECK_INT(tap, next, ALL);
    });
    TEST(tap, "a part without samples is refused", {
        const struct picture_cache_options options = {
            .paths = files->paths, .path_count = 1, .part = 1, .parts = FIRST + 1};
        struct picture_cache *pictures = NULL;
        struct error err = {0};
        CHECK_INT(tap, picture_cache_open(&pictures, &options, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "part 1 of 8 of 7 samples is empty"));
    });
    TEST(tap, "the digest is that of all data sets, in their order", {
        struct files other = *files;
        other.paths[0] = files->paths[1], other.paths[1] = files->paths[0];
        const struct files *const of[] = {files, files, &other, &other};
        uint32_t digest[4];
        for (size_t i = 0; i < 4; i++) {
            struct picture_cache *pictures = picture_cache_of(tap, of[i], i % 2 + 1, 0, 0, 0);
            digest[i] = picture_cache_digest(pictures);
            picture_cache_close(pictures);
            for (size_t j = 0; j < i; j++)
                CHECK(tap, digest[j] != digest[i]);
        }
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, 0);
        CHECK(tap, picture_cache_digest(pictures) == digest[1]);
        picture_cache_close(pictures);
    });
}

static void test_failures(struct tap *tap, const struct files *files) {
    TEST(tap, "without one of its data sets it does not open, and what is wrong with that is said",
         {
             struct files other = *files;
             struct picture_cache *pictures = NULL;
             struct error err = {0};
             const char *const missing = "/nowhere/images";
             for (int i = 0; i < 2; i++) {
                 other.paths[i] = missing, other.paths[1 - i] = files->paths[1 - i];
                 const struct picture_cache_options options = {.paths = other.paths,
                                                               .path_count = 2};
                 CHECK(tap, picture_cache_open(&pictures, &options, &err) != STATUS_OK);
                 CHECK(tap, !pictures && strstr(err.text, missing));
             }
         });
    TEST(tap, "there may be no memory for a picture, also for one that is in the cache", {
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        struct image image = {0};
        look(tap, pictures);
        heap_fail_after(0);
        int status = picture_cache_image(pictures, 0, &image, NULL);
        heap_fail_after(-1);
        CHECK_INT(tap, status, HEAP_FAILS ? STATUS_IO : STATUS_OK);
        image_free(&image);
        picture_cache_close(pictures);
    });
    TEST(tap, "what it had is free when it is closed", {
        long before = heap_live();
        struct picture_cache *pictures = picture_cache_of(tap, files, 2, 0, 0, PLENTY);
        look(tap, pictures);
        picture_cache_close(pictures);
        CHECK_INT(tap, heap_live(), before);
    });
}

// One picture of 65x33, decoded at a fraction, of class "c".
struct photo {
    char folder[TEMPFILE_PATH], class[TEMPFILE_PATH + 8], file[TEMPFILE_PATH + 16];
};

static void open_photo(struct photo *photo) {
    struct image image = {0};
    void *data;
    size_t size;
    tempfile_write(photo->folder, "", 0);
    unlink(photo->folder);
    snprintf(photo->class, sizeof photo->class, "%s/c", photo->folder);
    snprintf(photo->file, sizeof photo->file, "%s/p.jpg", photo->class);
    if (mkdir(photo->folder, 0700) || mkdir(photo->class, 0700) ||
        image_shape(&image, 65, 33, 1, PIXEL_U8, NULL))
        abort();
    for (int i = 0; i < 65 * 33; i++)
        image.u8[i] = (uint8_t)i;
    if (image_encode(&data, &size, &image, CODEC_JPEG, 90, NULL))
        abort();
    write_file(photo->file, data, size);
    free(data);
    image_free(&image);
}

static void close_photo(const struct photo *photo) {
    unlink(photo->file);
    rmdir(photo->class);
    rmdir(photo->folder);
}

static void test_fraction(struct tap *tap) {
    TEST(tap, "a picture at a fraction of its size is the same from the cache", {
        struct photo photo;
        open_photo(&photo);
        const char *paths[] = {photo.folder};
        const struct picture_cache_options options = {
            .paths = paths, .path_count = 1, .cache = PLENTY};
        struct picture_cache *pictures;
        struct image first = {0}, again = {0};
        CHECK_INT(tap, picture_cache_open(&pictures, &options, NULL), STATUS_OK);
        picture_cache_hint(pictures, &(struct decode_options){.least_width = 8, .least_height = 4});
        CHECK_INT(tap, picture_cache_image(pictures, 0, &first, NULL), STATUS_OK);
        CHECK_INT(tap, picture_cache_image(pictures, 0, &again, NULL), STATUS_OK);
        CHECK_INT(tap, picture_cache_figures(pictures).hits, 1);
        CHECK_INT(tap, first.true_size.by, 8);
        CHECK_INT(tap, again.true_size.by, 8);
        CHECK_INT(tap, image_true_width(&again), 65);
        CHECK_INT(tap, image_true_height(&again), 33);
        image_free(&first);
        image_free(&again);
        picture_cache_close(pictures);
        close_photo(&photo);
    });
}

int main(void) {
    struct tap tap = {0};
    struct files files;
    open_files(&files);
    test_cache(&tap, &files);
    test_warm(&tap, &files);
    test_parts(&tap, &files);
    test_failures(&tap, &files);
    test_fraction(&tap);
    close_files(&files);
    return tap_done(&tap);
}
