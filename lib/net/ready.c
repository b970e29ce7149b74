#include "net/ready.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/grow.h"
#include "net/address.h"
#include "store/output.h"

static int write_file(const char *path, const struct grow *text, struct error *err) {
    struct output *output;
    if (text->failed)
        return error_nomem(err);
    int status = output_open(&output, path, true, err);
    if (status)
        return status;
    status = output_write(output, text->text, text->length, err);
    if (status)
        output_abort(output);
    else
        status = output_close(output, err);
    return status;
}

static int tell_file(const char *path, struct grow *text, struct error *err) {
    int status = path ? write_file(path, text, err) : STATUS_OK;
    free(grow_take(text));
    return status;
}

int ready_tell(struct ready *ready, const char *const *addresses, size_t count, struct error *err) {
    struct grow text = {0};
    grow_format(&text, "%ld\n", (long)getpid());
    int status = tell_file(ready->pid_file, &text, err);
    for (size_t i = 0; !status && i < count; i++)
        grow_format(&text, "%s\n", addresses[i]);
    if (!status)
        status = tell_file(ready->port_file, &text, err);
    if (status || ready->fd < 0)
        return status;
    if (write(ready->fd, "\n", 1) != 1 || close(ready->fd))
        return error_errno(err, STATUS_IO, "--ready-fd %d", ready->fd);
    ready->fd = -1;
    return STATUS_OK;
}

void ready_forget(const struct ready *ready) {
    if (ready->port_file)
        unlink(ready->port_file);
    if (ready->pid_file)
        unlink(ready->pid_file);
}

static int read_line(const char *path, char line[PROTO_ADDRESS_MAX], struct error *err) {
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    bool there = fgets(line, PROTO_ADDRESS_MAX, file) != NULL;
    fclose(file);
    if (!there)
        return error_set(err, STATUS_NOINPUT, "%s: no address in it", path);
    line[strcspn(line, "\n")] = 0;
    return STATUS_OK;
}

int ready_find(const char *text, char address[PROTO_ADDRESS_MAX], struct error *err) {
    enum address_kind kind;
    if (*text != '@')
        snprintf(address, PROTO_ADDRESS_MAX, "%s", text);
    else if (read_line(text + 1, address, err))
        return err ? err->status : STATUS_NOINPUT;
    return address_kind(*text == '@' ? address : text, &kind, err);
}
