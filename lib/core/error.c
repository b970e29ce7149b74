#include "core/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int status, const char *format, ...) {
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return err->status = status;
}

int error_errno(struct error *err, int status, const char *format, ...) {
    int code = errno;
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    if ((size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(code));
    return err->status = status;
}

int error_context(struct error *err, const char *format, ...) {
    if (!err)
        return STATUS_BUG;
    char text[ERROR_TEXT], context[ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    memcpy(text, err->text, sizeof text);
    int n = snprintf(err->text, sizeof err->text, "%s: ", context);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, "%s", text);
    return err->status;
}
