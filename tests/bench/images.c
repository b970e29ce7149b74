// How fast photographs become training pictures:
//   images prepare|decode THREADS SECONDS FOLDER
// `prepare` decodes with the DCT scaled, makes the shorter side 256 (antialiased)
// and cuts out the middle 256x256; `decode` is libjpeg-turbo alone, at full size.
// Prints pictures per second, and per second of processor time and thread, which
// a busy machine disturbs less. The files are read before the clock starts.
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "image/codec.h"
#include "image/resize.h"

#define SIDE 256
#define MAX_FILES 10000
#define MAX_THREADS 64

struct file {
    unsigned char *data;
    size_t size;
};

struct bench {
    struct file files[MAX_FILES];
    int count;
    bool prepare;
    double end;
    atomic_int taken;
};

static struct file read_file(const char *folder, const char *name) {
    struct file file = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return file;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    file.data = size > 0 ? mem_array((size_t)size, 1) : NULL;
    file.size = file.data ? fread(file.data, 1, (size_t)size, f) : 0;
    fclose(f);
    return file;
}

static void read_folder(struct bench *bench, const char *folder) {
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && bench->count < MAX_FILES && (e = readdir(dir));) {
        struct file file = read_file(folder, e->d_name);
        if (codec_of(file.data, file.size) == CODEC_JPEG)
            bench->files[bench->count++] = file;
        else
            free(file.data);
    }
    if (dir)
        closedir(dir);
}

static bool prepare(const struct file *file, struct image *decoded, struct image *result) {
    struct decode_options options = {.channels = 3, .least_width = SIDE, .least_height = SIDE};
    struct error err = {0};
    if (image_decode(decoded, file->data, file->size, &options, &err))
        return false;
    int width = image_true_width(decoded), height = image_true_height(decoded);
    int shorter = width < height ? width : height;
    int full_width = (width * SIDE + shorter / 2) / shorter;
    int full_height = (height * SIDE + shorter / 2) / shorter;
    return !image_resize(result, decoded, FILTER_BILINEAR, full_width, full_height,
                         (full_width - SIDE) / 2, (full_height - SIDE) / 2, SIDE, SIDE, &err);
}

static bool decode(const struct file *file, struct image *decoded) {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr mgr;
    struct error err = {0};
    info.err = jpeg_std_error(&mgr);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file->data, file->size);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    bool ok =
        !image_shape(decoded, (int)info.image_width, (int)info.image_height, 3, PIXEL_U8, &err);
    if (ok) {
        jpeg_start_decompress(&info);
        while (info.output_scanline < info.output_height) {
            JSAMPROW row = decoded->u8 + (size_t)info.output_scanline * info.output_width * 3;
            jpeg_read_scanlines(&info, &row, 1);
        }
        jpeg_finish_decompress(&info);
    }
    jpeg_destroy_decompress(&info);
    return ok;
}

static void *work(void *argument) {
    struct bench *bench = argument;
    struct image decoded = {0}, result = {0};
    while (clock_seconds() < bench->end) {
        const struct file *file = &bench->files[atomic_fetch_add(&bench->taken, 1) % bench->count];
        bool ok = bench->prepare ? prepare(file, &decoded, &result) : decode(file, &decoded);
        if (!ok)
            abort();
    }
    image_free(&decoded);
    image_free(&result);
    return NULL;
}

int main(int argc, char **argv) {
    static struct bench bench;
    pthread_t threads[MAX_THREADS];
    if (argc != 5)
        return 2;
    int count = atoi(argv[2]);
    read_folder(&bench, argv[4]);
    if (bench.count == 0 || count < 1 || count > MAX_THREADS)
        return 66;
    bench.prepare = !strcmp(argv[1], "prepare");
    double start = clock_seconds();
    clock_t busy_start = clock();
    bench.end = start + atof(argv[3]);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, &bench))
            return 70;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    double pictures = atomic_load(&bench.taken);
    double busy = (double)(clock() - busy_start) / CLOCKS_PER_SEC / count;
    printf("%.1f %.1f\n", pictures / (clock_seconds() - start), pictures / busy);
    for (int i = 0; i < bench.count; i++)
        free(bench.files[i].data);
    return 0;
}
