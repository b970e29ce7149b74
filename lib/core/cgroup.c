#include "core/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io.h"
#include "core/text.h"

enum { TEXT = 64 }; // room for a file of two numbers

// What a group's file says, without the end of its line: false where there is none, or what it has
// is longer than any limit.
static bool read_text(const char *folder, const char *name, char text[static TEXT]) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = io_read_at(file, text, TEXT, 0);
    close(file);
    if (length > 0 && text[length - 1] == '\n')
        length--;
    if (length < 0 || length == TEXT)
        return false;
    text[length] = 0;
    return strlen(text) == (size_t)length;
}

// "max", and -1 in version 1, are no numbers that limit.
static bool is_limit(const char *text, size_t length, int64_t *limit) {
    return text_integer(text, length, limit) && *limit > 0;
}

static void grant_memory(struct cgroup_limits *least, const char *text) {
    int64_t limit;
    if (is_limit(text, strlen(text), &limit) && (uint64_t)limit < least->memory)
        least->memory = (uint64_t)limit;
}

// `quota` of each `period` microseconds, of all processors together.
static void grant_processors(struct cgroup_limits *least, const char *quota, size_t length,
                             const char *period) {
    int64_t used, each;
    if (!is_limit(quota, length, &used) || !is_limit(period, strlen(period), &each))
        return;
    int64_t processors = used / each + (used % each != 0);
    if (processors < least->processors)
        least->processors = (int)processors;
}

static void ask_both(struct cgroup_limits *least, const char *folder) {
    char text[TEXT];
    if (read_text(folder, "memory.max", text))
        grant_memory(least, text);
    if (!read_text(folder, "cpu.max", text))
        return;
    size_t quota = strcspn(text, " ");
    if (text[quota])
        grant_processors(least, text, quota, text + quota + 1);
}

static void ask_memory(struct cgroup_limits *least, const char *folder) {
    char text[TEXT];
    if (read_text(folder, "memory.limit_in_bytes", text))
        grant_memory(least, text);
}

static void ask_cpu(struct cgroup_limits *least, const char *folder) {
    char quota[TEXT], period[TEXT];
    if (read_text(folder, "cpu.cfs_quota_us", quota) &&
        read_text(folder, "cpu.cfs_period_us", period))
        grant_processors(least, quota, strlen(quota), period);
}

// The tree of version 2 has all controllers; in version 1 each that we ask has its own.
static const struct tree {
    const char *controller; // in /proc/self/cgroup
    const char *folder;     // below which its groups are
    void (*ask)(struct cgroup_limits *least, const char *folder);
} trees[] = {{"", "sys/fs/cgroup", ask_both},
             {"memory", "sys/fs/cgroup/memory", ask_memory},
             {"cpu", "sys/fs/cgroup/cpu", ask_cpu}};

enum { TREES = sizeof trees / sizeof *trees };

static void ask_group(struct cgroup_limits *least, const char *root, const struct tree *tree,
                      const char *group, size_t length) {
    char folder[PATH_MAX];
    int wanted = snprintf(folder, sizeof folder, "%s/%s%.*s", root, tree->folder,
                          length < PATH_MAX ? (int)length : PATH_MAX, group);
    if (wanted < (int)sizeof folder)
        tree->ask(least, folder);
}

// Whether a group's path leads out of its tree: such a group is not in sight of this process.
static bool leads_out(const char *group) {
    for (const char *up = group; (up = strstr(up, "/.."));) {
        up += 3;
        if (!*up || *up == '/')
            return true;
    }
    return false;
}

// The group, and those above it but the root.
static void ask_way(struct cgroup_limits *least, const char *root, const struct tree *tree,
                    const char *group) {
    if (*group != '/' || leads_out(group))
        return;
    for (size_t length = strlen(group); length > 0; length--)
        if (!group[length] || group[length] == '/')
            ask_group(least, root, tree, group, length);
}

// Whether `list`, of names between commas, has the name; of version 2 both are empty.
static bool is_listed(const char *list, size_t length, const char *name) {
    size_t wanted = strlen(name);
    for (const char *end = list + length;; list++) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t here = (size_t)((comma ? comma : end) - list);
        if (here == wanted && !memcmp(list, name, here))
            return true;
        if (!comma)
            return false;
        list = comma;
    }
}

// A line of /proc/self/cgroup: a number, the controllers, and the group that they have us in.
static void ask_line(struct cgroup_limits *least, const char *root, const char *line) {
    const char *list = strchr(line, ':');
    const char *group = list ? strchr(list + 1, ':') : NULL;
    for (int i = 0; group && i < TREES; i++)
        if (is_listed(list + 1, (size_t)(group - list - 1), trees[i].controller))
            ask_way(least, root, &trees[i], group + 1);
}

static void ask_lines(struct cgroup_limits *least, const char *root, FILE *file, const char *path) {
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while (!io_line(file, path, &line, &room, &length, NULL) && length >= 0) {
        if (length > 0 && line[length - 1] == '\n')
            line[--length] = 0;
        if (strlen(line) == (size_t)length)
            ask_line(least, root, line);
    }
    free(line);
}

struct cgroup_limits cgroup_limits(const char *root) {
    struct cgroup_limits least = {UINT64_MAX, INT_MAX};
    char path[PATH_MAX];
    for (int i = 0; i < TREES; i++)
        ask_group(&least, root, &trees[i], "", 0);
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= (int)sizeof path)
        return least;
    FILE *file = fopen(path, "re");
    if (file) {
        ask_lines(&least, root, file, path);
        fclose(file);
    }
    return least;
}
