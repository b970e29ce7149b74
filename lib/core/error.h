// Errors as values. Every function that can fail returns an int, STATUS_OK (0)
// or one of the statuses below, and takes a `struct error *` as its last
// parameter, into which it writes a sentence for the user. Only cmd/ prints it
// and exits, with the status as the exit status (adam(7), EXIT STATUS).
#ifndef ADAM_CORE_ERROR_H
#define ADAM_CORE_ERROR_H

enum status {
    STATUS_OK = 0,
    STATUS_SKIPPED = 1,      // done, but something was skipped or a threshold missed
    STATUS_USAGE = 2,        // the command line is wrong
    STATUS_DIVERGED = 3,     // the loss is no longer finite
    STATUS_DATA = 65,        // bad data or model file
    STATUS_NOINPUT = 66,     // cannot read the input
    STATUS_UNAVAILABLE = 69, // a peer does not answer
    STATUS_BUG = 70,         // a bug of ours
    STATUS_CANTCREATE = 73,  // cannot create the output
    STATUS_IO = 74,          // I/O error, or out of memory
    STATUS_STOPPED = 75,     // stopped on request, state saved, run me again
};

#define ERROR_TEXT 2048

// The caller owns it, usually on the stack, initialised with {0}.
// `text` is one or more whole lines without the final newline.
struct error {
    int status;
    char text[ERROR_TEXT];
};

// Each sets `status` and the text and returns `status`, so that a caller can
// write `return error_set(err, STATUS_DATA, "...")`. `err` may be NULL.
int error_set(struct error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The same, followed by ": " and strerror(errno).
int error_errno(struct error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "context: " before the text that is there. Returns err->status.
int error_context(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

// "out of memory". Here, so that every compiler and checker sees that it is a failure.
static inline int error_nomem(struct error *err) {
    error_set(err, STATUS_IO, "out of memory");
    return STATUS_IO;
}

#endif
