#include "net/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/grow.h"
#include "net/address.h"
#include "store/output.h"

enum { READY_MAX = 8 * PROTO_ADDRESS_MAX }; // bytes of a list of addresses

static int tell_file(const char *path, struct grow *text, struct stat *written, struct error *err) {
    int status = STATUS_OK;
    if (path)
        status = text->failed ? error_nomem(err)
                              : output_whole(path, true, text->text, text->length, err);
    if (!path || status || lstat(path, written))
        *written = (struct stat){0};
    free(grow_take(text));
    return status;
}

int ready_tell(struct ready *ready, const char *const *addresses, size_t count, struct error *err) {
    struct grow text = {0};
    grow_format(&text, "%ld\n", (long)getpid());
    int status = tell_file(ready->pid_file, &text, &ready->pid, err);
    for (size_t i = 0; !status && i < count; i++)
        grow_format(&text, "%s\n", addresses[i]);
    if (!status)
        status = tell_file(ready->port_file, &text, &ready->port, err);
    if (status || ready->fd < 0)
        return status;
    if (write(ready->fd, "\n", 1) != 1 || close(ready->fd))
        return error_errno(err, STATUS_IO, "--ready-fd %d", ready->fd);
    ready->fd = -1;
    return STATUS_OK;
}

// A file that is written anew is another, though it say the same. No pipe or terminal is removed.
static void forget_file(const char *path, const struct stat *written) {
    struct stat now;
    if (path && S_ISREG(written->st_mode) && lstat(path, &now) == 0 &&
        now.st_dev == written->st_dev && now.st_ino == written->st_ino &&
        now.st_ctim.tv_sec == written->st_ctim.tv_sec &&
        now.st_ctim.tv_nsec == written->st_ctim.tv_nsec)
        unlink(path);
}

void ready_forget(const struct ready *ready) {
    forget_file(ready->port_file, &ready->port);
    forget_file(ready->pid_file, &ready->pid);
}

// What the file says, at most so many bytes.
static int read_file(const char *path, char text[READY_MAX], struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    size_t length = fread(text, 1, READY_MAX - 1, file);
    fclose(file);
    text[length] = 0;
    return text[strspn(text, "\n")] ? STATUS_OK
                                    : error_set(err, STATUS_NOINPUT, "%s: no address in it", path);
}

// The word whose turn it is, and how many there are.
static uint32_t choose_word(char *text, uint32_t turn, const char **word) {
    static const char between[] = ",\n";
    uint32_t count = 0;
    char *words[READY_MAX / 2], *rest = NULL;
    for (char *at = strtok_r(text, between, &rest); at; at = strtok_r(NULL, between, &rest))
        words[count++] = at;
    *word = count ? words[turn % count] : "";
    return count;
}

int ready_find(const char *text, uint32_t turn, char address[PROTO_ADDRESS_MAX], uint32_t *count,
               struct error *err) {
    enum address_kind kind;
    char words[READY_MAX];
    const char *word;
    int status = STATUS_OK;
    if (*text == '@')
        status = read_file(text + 1, words, err);
    else
        snprintf(words, sizeof words, "%s", text);
    if (status)
        return status;
    *count = choose_word(words, turn, &word);
    snprintf(address, PROTO_ADDRESS_MAX, "%s", word);
    return address_kind(address, &kind, err);
}
