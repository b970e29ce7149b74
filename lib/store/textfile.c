#include "store/textfile.h"

#include <errno.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"
#include "store/output.h"

struct textfile {
    struct output *output;
    FILE *stream;
    struct error err; // of the first write that failed
};

// What stdio calls with the bytes of its buffer; 0 tells it of a failure.
static ssize_t write_through(void *cookie, const char *data, size_t size) {
    struct textfile *file = cookie;
    if (output_write(file->output, data, size, file->err.status ? NULL : &file->err))
        return 0;
    return (ssize_t)size;
}

int textfile_open(struct textfile **out, const char *path, struct error *err) {
    struct textfile *file = mem_zeroed(1, sizeof *file);
    if (!file)
        return error_nomem(err);
    int status = output_open(&file->output, path, true, err);
    if (status == STATUS_OK) {
        file->stream = fopencookie(file, "w", (cookie_io_functions_t){.write = write_through});
        if (!file->stream)
            status = error_nomem(err);
    }
    if (status == STATUS_OK)
        *out = file;
    else
        textfile_abort(file);
    return status;
}

FILE *textfile_stream(struct textfile *file) {
    return file->stream;
}

int textfile_close(struct textfile *file, struct error *err) {
    bool whole = !ferror(file->stream);
    whole = fclose(file->stream) == 0 && whole;
    file->stream = NULL;
    if (!whole) {
        int status = file->err.status ? file->err.status : STATUS_IO;
        error_set(err, status, "%s", file->err.status ? file->err.text : "cannot write");
        textfile_abort(file);
        return status;
    }
    int status = output_close(file->output, err);
    free(file);
    return status;
}

void textfile_abort(struct textfile *file) {
    if (!file)
        return;
    if (file->stream)
        fclose(file->stream);
    if (file->output)
        output_abort(file->output);
    free(file);
}
