// Checkpoints in parts: what is written is read back, nothing is believed that does not fit, and
// nothing half is left.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "remote/part_gather.h"
#include "run/checkpoint_parts.h"
#include "store/map.h"

enum { PATH = 120, CLOCK = 7, WEIGHTS = 2 * 3 + 3 + 3 * 2 + 2 };
static const char model_text[] = "input 1x1x2\ndense d1 units=3\nsoftmax s units=2\n";
// Tensors are d1.weight, d1.bias, s.weight, s.bias.
static const uint32_t first_part[] = {0, 3}, second_part[] = {1, 2};
static char folder[PATH];

static char *in(const char *name) {
    static char paths[4][3 * PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

#define SAVED "ckpt-00000007/"
#define INDEX SAVED "model.safetensors.index.json"
#define FIRST SAVED "model-00001-of-00002.safetensors"
#define SECOND SAVED "model-00002-of-00002.safetensors"

static void fill(struct checkpoint *checkpoint) {
    *checkpoint = (struct checkpoint){.clock = CLOCK,
                                      .samples = 56,
                                      .epoch = 0.5,
                                      .seed = 3,
                                      .optimizer = {.rule = RULE_MOMENTUM, .momentum = 0.5F},
                                      .run = json_object()};
    int label;
    if (model_parse(&checkpoint->model, "a.net", model_text, NULL, 0, NULL) ||
        classes_label(&checkpoint->classes, "cat", &label, NULL) ||
        classes_label(&checkpoint->classes, "dog", &label, NULL))
        abort();
}

static float weight_at(size_t i) {
    return (float)i + 1;
}
static float state_at(size_t i) {
    return -(float)i / 2;
}

// --- writing --------------------------------------------------------------------------

static int write_values(struct checkpoint_part_file *file, const struct named_parameter *named,
                        float (*value)(size_t), struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < named->parameter->count; i++) {
        float one = value(named->parameter->offset + i);
        status = checkpoint_part_write(file, &one, 1, err);
    }
    return status;
}

static int write_part(const struct checkpoint_draft *draft, const struct checkpoint *checkpoint,
                      struct checkpoint_part *part, uint32_t number, struct error *err) {
    struct named_parameter *weights, *states;
    struct tensor tensors[4];
    size_t count;
    struct checkpoint_part_file file;
    if (named_parameters(&weights, &count, checkpoint->model, NULL, err) ||
        named_parameters(&states, &count, checkpoint->model, "momentum", err))
        abort();
    for (size_t i = 0; i < part->count; i++) {
        tensors[i] = named_tensor(&weights[part->tensors[i]], NULL);
        tensors[part->count + i] = named_tensor(&states[part->tensors[i]], NULL);
    }
    int status = checkpoint_part_open(&file, draft->path, draft->token, number, 2, tensors,
                                      2 * part->count, err);
    if (!status) {
        for (size_t i = 0; !status && i < part->count; i++)
            status = write_values(&file, &weights[part->tensors[i]], weight_at, err);
        for (size_t i = 0; !status && i < part->count; i++)
            status = write_values(&file, &states[part->tensors[i]], state_at, err);
        status = checkpoint_part_end(&file, status, err);
        part->sum = file.sum;
    }
    named_parameters_free(weights, count);
    named_parameters_free(states, count);
    return status;
}

// `lie` is added to what the second part is said to have.
static int save(uint64_t clock, int lie, struct error *err) {
    struct checkpoint checkpoint;
    struct checkpoint_draft draft;
    struct checkpoint_part parts[] = {{.tensors = first_part, .count = 2},
                                      {.tensors = second_part, .count = 2}};
    fill(&checkpoint);
    checkpoint.clock = clock;
    int status = checkpoint_draft_open(&draft, folder, clock, err);
    if (!status) {
        status = write_part(&draft, &checkpoint, &parts[0], 1, err);
        if (!status)
            status = write_part(&draft, &checkpoint, &parts[1], 2, err);
        parts[1].sum.bytes += (uint64_t)lie;
        if (!status)
            status = checkpoint_draft_save(&draft, &checkpoint, parts, 2, 0, err);
        status = checkpoint_draft_end(&draft, status, err);
    }
    checkpoint_free(&checkpoint);
    return status;
}

// --- files ----------------------------------------------------------------------------

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 8192);
    if (!file || !text || fread(text, 1, 8191, file) == 0)
        abort();
    fclose(file);
    return text;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file))
        abort();
}

// Replaces the first `from` in the index, keeps what was there.
static char *edit_index(const char *from, const char *to) {
    char *before = read_text(in(INDEX)), text[8192];
    const char *at = strstr(before, from);
    if (!at)
        abort();
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - before), before, to, at + strlen(from));
    write_text(in(INDEX), text);
    return before;
}

static void flip_byte(const char *path, long place) {
    int fd = open(path, O_RDWR);
    unsigned char byte;
    if (pread(fd, &byte, 1, place) != 1)
        abort();
    byte ^= 1;
    if (pwrite(fd, &byte, 1, place) != 1)
        abort();
    close(fd);
}

static size_t files_in(const char *path) {
    DIR *dir = opendir(path);
    size_t count = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return count;
}

static void clean(void) {
    run_folder_prune(folder, 1, 0);
    run_folder_remove(in(SAVED));
    run_folder_remove(in("ckpt-00000008"));
    unlink(in("latest"));
}

// --- a run that goes on meanwhile -------------------------------------------------------

// Once, when the next file of a checkpoint is opened: before that, or right after.
static void (*meanwhile)(void);
static bool meanwhile_before;

// Once the manifest is opened, and so the file of which it tells.
static void shorten(void) {
    if (truncate(in(SAVED "model.safetensors"), 0))
        abort();
}

static void go_on(const char *path, bool before) {
    void (*what)(void) = meanwhile;
    if (!what || (what == shorten && !strstr(path, "manifest")) || before != meanwhile_before ||
        (!strstr(path, ".json") && !strstr(path, ".safetensors")))
        return;
    meanwhile = NULL;
    what();
}

int open(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    go_on(path, true);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); // NOLINT
    int told = errno;
    go_on(path, false);
    errno = told;
    return fd;
}

static void point_onward(void) {
    if (unlink(in("latest")) || symlink("ckpt-00000008", in("latest")))
        abort();
}

static void point_onward_and_prune(void) {
    point_onward();
    run_folder_remove(in(SAVED));
}

// Two checkpoints, and `latest` is the first.
static void save_two(struct tap *tap) {
    CHECK_INT(tap, save(CLOCK, 0, NULL), STATUS_OK);
    CHECK_INT(tap, save(CLOCK + 1, 0, NULL), STATUS_OK);
    CHECK(tap, !unlink(in("latest")) && !symlink("ckpt-00000007", in("latest")));
}

static void test_meanwhile(struct tap *tap) {
    static const char *const paths[] = {"", "latest", "latest/",
                                        "latest/model.safetensors.index.json"};
    TEST(tap, "all that is read is of one checkpoint while the run saves another", {
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            struct checkpoint checkpoint;
            struct error err = {0};
            save_two(tap);
            meanwhile = point_onward;
            meanwhile_before = false;
            CHECK_INT(tap, checkpoint_load(&checkpoint, in(paths[i]), NULL, 0, true, &err),
                      STATUS_OK);
            CHECK(tap, !meanwhile);
            CHECK_INT(tap, checkpoint.clock, CLOCK);
            checkpoint_free(&checkpoint);
            clean();
        }
    });
    TEST(tap, "the next is read where the run removes the one that was found", {
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            struct checkpoint checkpoint;
            struct error err = {0};
            save_two(tap);
            meanwhile = point_onward_and_prune;
            meanwhile_before = true;
            CHECK_INT(tap, checkpoint_load(&checkpoint, in(paths[i]), NULL, 0, true, &err),
                      STATUS_OK);
            CHECK_INT(tap, checkpoint.clock, CLOCK + 1);
            CHECK_INT(tap, err.status, STATUS_OK);
            checkpoint_free(&checkpoint);
            clean();
        }
    });
}

// --- saving and loading ---------------------------------------------------------------

static void check_values(struct tap *tap, const struct checkpoint *checkpoint) {
    for (size_t i = 0; i < WEIGHTS; i++) {
        CHECK_NEAR(tap, checkpoint->parameters[i], weight_at(i), 0);
        CHECK_NEAR(tap, checkpoint->state[i], state_at(i), 0);
    }
    CHECK_INT(tap, checkpoint->clock, CLOCK);
    CHECK_INT(tap, checkpoint->samples, 56);
    CHECK_INT(tap, checkpoint->seed, 3);
    CHECK_NEAR(tap, checkpoint->epoch, 0.5, 0);
    CHECK_NEAR(tap, checkpoint->optimizer.momentum, 0.5, 0);
    CHECK_TEXT(tap, checkpoint->model->text, model_text);
    CHECK_TEXT(tap, checkpoint->classes.names[1], "dog");
    CHECK(tap, checkpoint->directory != NULL);
}

static void test_load(struct tap *tap) {
    TEST(tap, "a checkpoint in parts is read as it was saved: weights, state, texts", {
        static const char *const paths[] = {"", "latest", SAVED, INDEX};
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        CHECK_INT(tap, files_in(in(SAVED)), 4); // parts, index, manifest
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            struct checkpoint checkpoint;
            int status = checkpoint_load(&checkpoint, in(paths[i]), NULL, 0, true, &err);
            CHECK_INT(tap, status, STATUS_OK);
            if (!status)
                check_values(tap, &checkpoint);
            checkpoint_free(&checkpoint);
        }
        clean();
    });
}

// Written by Python: json.dumps({...}, indent=2, sort_keys=True).
static const char golden[] =
    "{\n"
    "  \"metadata\": {\n"
    "    \"classes\": \"[\\\"cat\\\",\\\"dog\\\"]\",\n"
    "    \"clock\": \"7\",\n"
    "    \"epoch\": \"0.5\",\n"
    "    \"format\": \"adam\",\n"
    "    \"input_ops\": \"\",\n"
    "    \"model\": \"input 1x1x2\\ndense d1 units=3\\nsoftmax s units=2\\n\",\n"
    "    \"model_name\": \"a.net\",\n"
    "    \"optimizer\": \"{\\\"rule\\\":\\\"momentum\\\",\\\"momentum\\\":0.5,\\\"decay\\\":0.0,"
    "\\\"epsilon\\\":0.0,\\\"clip\\\":0.0}\",\n"
    "    \"run\": \"{}\",\n"
    "    \"samples\": \"56\",\n"
    "    \"seed\": \"3\",\n"
    "    \"total_size\": 136,\n"
    "    \"version\": \"" ADAM_VERSION "\"\n"
    "  },\n"
    "  \"weight_map\": {\n"
    "    \"d1.bias\": \"model-00002-of-00002.safetensors\",\n"
    "    \"d1.weight\": \"model-00001-of-00002.safetensors\",\n"
    "    \"momentum.d1.bias\": \"model-00002-of-00002.safetensors\",\n"
    "    \"momentum.d1.weight\": \"model-00001-of-00002.safetensors\",\n"
    "    \"momentum.s.bias\": \"model-00001-of-00002.safetensors\",\n"
    "    \"momentum.s.weight\": \"model-00002-of-00002.safetensors\",\n"
    "    \"s.bias\": \"model-00001-of-00002.safetensors\",\n"
    "    \"s.weight\": \"model-00002-of-00002.safetensors\"\n"
    "  }\n"
    "}";

static void test_golden(struct tap *tap) {
    TEST(tap, "the index has the bytes that Hugging Face's tools would write", {
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        char *text = read_text(in(INDEX));
        CHECK_TEXT(tap, text, golden);
        free(text);
        clean();
    });
}

// --- indexes that lie -----------------------------------------------------------------

#define MAPPED(name, file) "\"" name "\": \"" file "\""
#define ONE "model-00001-of-00002.safetensors"
#define TWO "model-00002-of-00002.safetensors"

static const struct lie {
    const char *from, *to;
    int status;
    const char *why;
} lies[] = {
    {"\"total_size\": 136", "\"total_size\": 132", STATUS_DATA, "'total_size' is 132"},
    {"\"total_size\": 136", "\"total_size\": 140", STATUS_DATA, "136 bytes of tensors"},
    {"\"total_size\": 136", "\"total_size\": -1", STATUS_DATA, "'total_size' is missing"},
    {"\"total_size\": 136", "\"total_size\": \"136\"", STATUS_DATA, "'total_size' is missing"},
    {"\"total_size\": 136", "\"total\": 136", STATUS_DATA, "'total_size' is missing"},
    {"\"total_size\": 136", "\"total_size\": 136.0", STATUS_DATA, "'total_size' is missing"},
    {"\"metadata\": {", "\"metadate\": {", STATUS_DATA, "'total_size' is missing"},
    {"\"weight_map\"", "\"weight_mop\"", STATUS_DATA, "'weight_map' is missing"},
    {"\"weight_map\": {", "\"weight_map\": 1, \"x\": {", STATUS_DATA, "'weight_map' is missing"},
    {MAPPED("s.bias", ONE), "\"s.bias\": 1", STATUS_DATA, "'s.bias' is in no file"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", ""), STATUS_DATA, "'s.bias' is in no file"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", "../" ONE), STATUS_DATA, "'s.bias' is in no file"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", ".."), STATUS_DATA, "'s.bias' is in no file"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", "/etc/passwd"), STATUS_DATA, "is in no file"},
    {MAPPED("s.bias", ONE), MAPPED("s.bios", ONE), STATUS_DATA, "tensor 's.bias' is missing"},
    {MAPPED("momentum.s.bias", ONE), MAPPED("momentum.s.bios", ONE), STATUS_DATA,
     "tensor 'momentum.s.bias' is missing"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", TWO), STATUS_DATA,
     "'s.bias' is in it, and in model-00002-of-00002.safetensors by the index"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", ONE) ", " MAPPED("x", ONE), STATUS_DATA,
     "it has 4 tensors, and 5 by the index"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", ONE) ", " MAPPED("s.bias", TWO), STATUS_DATA,
     "duplicate"},
    {MAPPED("s.bias", ONE), MAPPED("s.bias", ONE) ", " MAPPED("x", "x.safetensors"), STATUS_NOINPUT,
     "x.safetensors: No such file"},
    {"\"classes\"", "\"closses\"", STATUS_DATA, "metadata 'classes' is missing"},
    {"\"format\": \"adam\"", "\"format\": \"pt\"", STATUS_DATA, "not a checkpoint of adam"},
    {"units=2", "units=4", STATUS_DATA, "'s.bias' is F32 2 where the model has F32 4"},
    {"{\n", "[\n", STATUS_DATA, "JSON line"},
};

static void check_lie(struct tap *tap, const struct lie *lie) {
    struct checkpoint checkpoint;
    struct error err = {0};
    char *before = edit_index(lie->from, lie->to);
    CHECK_INT(tap, checkpoint_load(&checkpoint, in(INDEX), NULL, 0, true, &err), lie->status);
    if (!strstr(err.text, lie->why))
        FAIL(tap, "%s: not '%s': %s", lie->to, lie->why, err.text);
    write_text(in(INDEX), before);
    free(before);
}

static void test_lies(struct tap *tap) {
    TEST(tap, "an index that does not fit its parts is refused, and nothing is left", {
        struct error err = {0};
        long live = heap_live();
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        unlink(in(SAVED "manifest.json")); // whose CRC-32 would tell
        for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
            check_lie(tap, &lies[i]);
        CHECK_INT(tap, heap_live(), live);
        clean();
    });
}

// --- damage ---------------------------------------------------------------------------

static void check_damage(struct tap *tap, const char *path, const char *why) {
    struct checkpoint checkpoint;
    struct error err = {0};
    CHECK_INT(tap, checkpoint_load(&checkpoint, folder, NULL, 0, true, &err), STATUS_DATA);
    if (!strstr(err.text, path) || !strstr(err.text, why))
        FAIL(tap, "not %s, %s: %s", path, why, err.text);
    CHECK(tap, strstr(err.text, "the newest sound checkpoint is") != NULL);
}

static void test_damage(struct tap *tap) {
    TEST(tap, "a part that is damaged is named, and the newest sound checkpoint", {
        struct error err = {0};
        static const char *const files[] = {ONE, TWO, "model.safetensors.index.json"};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        CHECK_INT(tap, save(CLOCK + 1, 0, &err), STATUS_OK);
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            char path[PATH];
            snprintf(path, sizeof path, "ckpt-00000008/%s", files[i]);
            flip_byte(in(path), 200);
            check_damage(tap, files[i], "it is damaged: its CRC-32 is");
            flip_byte(in(path), 200);
        }
        CHECK(tap, !truncate(in("ckpt-00000008/" TWO), 300));
        check_damage(tap, TWO, "it has 300 bytes where manifest.json says");
        clean();
    });
    TEST(tap, "a part that is missing is named, and the newest sound checkpoint", {
        struct checkpoint checkpoint;
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        CHECK_INT(tap, save(CLOCK + 1, 0, &err), STATUS_OK);
        unlink(in("ckpt-00000008/" ONE));
        CHECK_INT(tap, checkpoint_load(&checkpoint, folder, NULL, 0, true, &err), STATUS_NOINPUT);
        CHECK(tap, strstr(err.text, ONE ": No such file") != NULL);
        CHECK(tap, strstr(err.text, "the newest sound checkpoint is") != NULL);
        clean();
    });
    TEST(tap, "one that becomes shorter while it is read is damaged, and ends nobody", {
        struct checkpoint checkpoint;
        struct error err = {0};
        fill(&checkpoint);
        CHECK_INT(tap, checkpoint_make_room(&checkpoint, true, &err), STATUS_OK);
        CHECK_INT(tap, checkpoint_save(&checkpoint, folder, 0, &err), STATUS_OK);
        checkpoint_free(&checkpoint);
        meanwhile = shorten; // once its file is open
        CHECK_INT(tap, checkpoint_load(&checkpoint, folder, NULL, 0, true, &err), STATUS_DATA);
        CHECK(tap, !meanwhile);
        if (!strstr(err.text, "and became shorter while it was read"))
            FAIL(tap, "%s", err.text);
        clean();
    });
    TEST(tap, "a pipe by the name of the manifest is refused, not waited for", {
        struct checkpoint checkpoint;
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        CHECK(tap, !unlink(in(SAVED "manifest.json")) && !mkfifo(in(SAVED "manifest.json"), 0600));
        alarm(60);
        CHECK_INT(tap, checkpoint_load(&checkpoint, folder, NULL, 0, false, &err), STATUS_DATA);
        alarm(0);
        CHECK(tap, strstr(err.text, "manifest.json: is no plain file"));
        clean();
    });
    TEST(tap, "a part alone is no checkpoint", {
        struct checkpoint checkpoint;
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        unlink(in(SAVED "manifest.json"));
        CHECK_INT(tap, checkpoint_load(&checkpoint, in(FIRST), NULL, 0, false, &err), STATUS_DATA);
        CHECK(tap, strstr(err.text, "it is a part of a checkpoint") != NULL);
        clean();
    });
}

// Bytes that the process has, at most so far.
static long most_memory(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_maxrss;
}

// Writes a file of metadata alone, as they are saved but for the model.
static void write_claim(const char *path, const char *model) {
    struct checkpoint checkpoint;
    struct map map;
    struct safetensors file;
    struct file_sum sum;
    fill(&checkpoint);
    if (checkpoint_make_room(&checkpoint, true, NULL) ||
        checkpoint_save(&checkpoint, folder, 0, NULL) ||
        map_open(&map, in(SAVED "model.safetensors"), NULL) ||
        safetensors_parse(&file, map.data, map.size, NULL) ||
        json_object_set_new(file.metadata, "model", json_string(model)))
        abort();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || safetensors_write(fd, NULL, 0, file.metadata, &sum, NULL))
        abort();
    close(fd);
    safetensors_free(&file);
    map_close(&map);
    checkpoint_free(&checkpoint);
    clean();
}

static void test_claims(struct tap *tap) {
    TEST(tap, "values that a file only claims to have take no memory", {
        struct checkpoint checkpoint;
        struct error err = {0};
        // 1.4 GB, with what momentum keeps
        write_claim(in("claim.safetensors"),
                    "input 1x1x2\ndense units=60000000\nsoftmax units=2\n");
        long before = most_memory();
        CHECK_INT(tap, checkpoint_load(&checkpoint, in("claim.safetensors"), NULL, 0, true, &err),
                  STATUS_DATA);
        CHECK(tap, strstr(err.text, "tensor 'dense1.weight' is missing"));
        CHECK(tap, most_memory() - before < 100000);
        unlink(in("claim.safetensors"));
    });
    TEST(tap, "nor do those of an index", {
        struct checkpoint checkpoint;
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        unlink(in(SAVED "manifest.json"));
        char *index = edit_index("units=3", "units=60000000");
        long before = most_memory();
        CHECK_INT(tap, checkpoint_load(&checkpoint, in(INDEX), NULL, 0, true, &err), STATUS_DATA);
        if (!strstr(err.text, "where the model has F32 60000000"))
            FAIL(tap, "%s", err.text);
        CHECK(tap, most_memory() - before < 100000);
        free(index);
        clean();
    });
}

// --- what is left ---------------------------------------------------------------------

static void test_token(struct tap *tap) {
    TEST(tap, "a part is written only into a folder with its token, and once", {
        struct checkpoint_draft draft;
        struct checkpoint_part_file file;
        struct error err = {0};
        const uint8_t other[CHECKPOINT_TOKEN] = {1};
        CHECK_INT(tap, checkpoint_draft_open(&draft, folder, CLOCK, &err), STATUS_OK);
        CHECK_INT(tap, files_in(draft.path), 1);
        CHECK_INT(tap, checkpoint_part_open(&file, draft.path, other, 1, 2, NULL, 0, &err),
                  STATUS_CANTCREATE);
        CHECK(tap, strstr(err.text, "is not the folder that the controller made") != NULL);
        CHECK_INT(tap, checkpoint_part_open(&file, folder, draft.token, 1, 2, NULL, 0, &err),
                  STATUS_CANTCREATE);
        CHECK_INT(tap, files_in(draft.path), 1);
        CHECK_INT(tap, checkpoint_part_open(&file, draft.path, draft.token, 1, 2, NULL, 0, &err),
                  STATUS_OK);
        CHECK_INT(tap, checkpoint_part_end(&file, STATUS_OK, &err), STATUS_OK);
        CHECK_INT(tap, files_in(draft.path), 2);
        CHECK_INT(tap, checkpoint_part_open(&file, draft.path, draft.token, 1, 2, NULL, 0, &err),
                  STATUS_CANTCREATE);
        CHECK_INT(tap, files_in(draft.path), 2);
        CHECK_INT(tap, checkpoint_part_open(&file, draft.path, draft.token, 2, 2, NULL, 0, &err),
                  STATUS_OK);
        CHECK_INT(tap, checkpoint_part_end(&file, STATUS_STOPPED, &err), STATUS_STOPPED);
        CHECK_INT(tap, files_in(draft.path), 2);
        err = (struct error){.status = STATUS_STOPPED};
        checkpoint_draft_end(&draft, STATUS_STOPPED, &err);
        CHECK_INT(tap, files_in(folder), 0);
    });
}

static void test_nothing_half(struct tap *tap) {
    TEST(tap, "a part of another size than was told makes no checkpoint, and nothing is left", {
        for (int lie = -1; lie <= 1; lie += 2) {
            struct error err = {0};
            CHECK_INT(tap, save(CLOCK, lie, &err), STATUS_DATA);
            CHECK(tap, strstr(err.text, "cannot save ") && strstr(err.text, TWO " has "));
            CHECK_INT(tap, files_in(folder), 0);
        }
    });
    TEST(tap, "when memory is out a checkpoint in parts is not read, and nothing is left", {
        struct error err = {0};
        CHECK_INT(tap, save(CLOCK, 0, &err), STATUS_OK);
        long live = heap_live();
        bool failed = HEAP_FAILS;
        for (int n = 0; failed; n++) {
            struct checkpoint checkpoint;
            heap_fail_after(n);
            failed = checkpoint_load(&checkpoint, in(SAVED), NULL, 0, true, NULL) != STATUS_OK;
            heap_fail_after(-1);
            if (!failed)
                check_values(tap, &checkpoint);
            checkpoint_free(&checkpoint);
            CHECK_INT(tap, heap_live(), live);
        }
        clean();
    });
}

// --- parts elsewhere ------------------------------------------------------------------

static const uint8_t run_id[CHECKPOINT_TOKEN] = {0xab, 0xcd};

static void make_own(struct tap *tap, uint8_t first) {
    const uint8_t token[CHECKPOINT_TOKEN] = {first};
    struct checkpoint_part_file file;
    char *own = checkpoint_own_folder(folder, run_id, token);
    CHECK_INT(tap, checkpoint_own_make(own, token, NULL), STATUS_OK);
    CHECK_INT(tap, checkpoint_part_open(&file, own, token, 1, 1, NULL, 0, NULL), STATUS_OK);
    CHECK_INT(tap, checkpoint_part_end(&file, STATUS_OK, NULL), STATUS_OK);
    free(own);
}

static void test_own(struct tap *tap) {
    TEST(tap, "a server keeps the parts of the checkpoints that are kept, and what is no part", {
        static const char run[] = "abcd0000000000000000000000000000";
        const uint8_t kept[][CHECKPOINT_TOKEN] = {{2}, {9}};
        for (uint8_t first = 1; first <= 3; first++)
            make_own(tap, first);
        CHECK_INT(tap, files_in(in(run)), 3);
        write_text(in("abcd0000000000000000000000000000/other"), "x");
        checkpoint_own_prune(folder, run_id, kept, 2);
        CHECK_INT(tap, files_in(in(run)), 2);
        CHECK_INT(tap,
                  files_in(in("abcd0000000000000000000000000000/02000000000000000000000000000000")),
                  2);
        checkpoint_own_prune(folder, run_id, NULL, 0);
        CHECK_INT(tap, files_in(in(run)), 1);
        make_own(tap, 3);
        struct checkpoint_own own = {.token = {3}};
        memcpy(own.run, run_id, sizeof own.run);
        checkpoint_own_remove(folder, &own);
        CHECK_INT(tap, files_in(in(run)), 1); // the other one stays
        checkpoint_own_remove(folder, &own);
        CHECK_INT(tap, files_in(in(run)), 1);
        run_folder_remove(in(run));
        CHECK_INT(tap, files_in(folder), 0);
    });
}

#define RUN_ID                                                                                     \
    "\"parts\": {\"run\": \"abcd0000000000000000000000000000\", "                                  \
    "\"token\": \"02000000000000000000000000000000\"}"
#define FILE_OF(name, bytes, crc)                                                                  \
    "{\"files\": [{\"name\": \"" name "\", \"bytes\": " bytes ", \"crc32\": \"" crc                \
    "\", \"server\": \"ps-1\"}], "

static const struct {
    const char *text;
    int status;
} manifests[] = {
    {FILE_OF(ONE, "8", "01234567") RUN_ID "}", STATUS_UNAVAILABLE}, // nobody has it
    {FILE_OF("../" ONE, "8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF("/" ONE, "8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE "/../x", "8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF("model-00001-of-00002", "8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF("manifest.json", "8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE, "-8", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE, "8.5", "01234567") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE, "8", "0123456x") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE, "8", "") RUN_ID "}", STATUS_DATA},
    {FILE_OF(ONE, "8", "01234567") "\"parts\": {}}", STATUS_DATA},
    {FILE_OF(ONE, "8", "01234567") "\"parts\": {\"run\": \"ab\", \"token\": \"cd\"}}", STATUS_DATA},
    {"{\"files\": 1}", STATUS_OK},
};

static void test_gather(struct tap *tap) {
    TEST(tap, "a manifest that would lead out of the folder, or lacks a number, is refused", {
        const struct part_gather gather = {0};
        for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
            json_t *manifest = NULL;
            struct error err = {0};
            if (json_read(&manifest, manifests[i].text, strlen(manifests[i].text), &err))
                FAIL(tap, "%s", err.text);
            int status = part_gather(&gather, manifest, folder, &err);
            if (status != manifests[i].status)
                FAIL(tap, "%d, not %d: %s", status, manifests[i].status, manifests[i].text);
            if (status == STATUS_UNAVAILABLE)
                CHECK_TEXT(tap, err.text,
                           "parameter server 'ps-1', which has " ONE ", is not there");
            json_decref(manifest);
        }
        CHECK_INT(tap, files_in(folder), 0);
    });
}

int main(void) {
    struct tap tap = {0};
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/adam-test-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return 2;
    test_load(&tap);
    test_meanwhile(&tap);
    test_golden(&tap);
    test_lies(&tap);
    test_damage(&tap);
    test_claims(&tap);
    test_token(&tap);
    test_nothing_half(&tap);
    test_own(&tap);
    test_gather(&tap);
    rmdir(folder);
    return tap_done(&tap);
}
