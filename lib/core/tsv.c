#include "core/tsv.h"

#include <string.h>

void tsv_text(FILE *out, const char *text) {
    static const char plain[] = "\t\n\r\\", written[] = "tnr\\";
    for (; *text; text++) {
        const char *special = strchr(plain, *text);
        if (special)
            fprintf(out, "\\%c", written[special - plain]);
        else
            putc(*text, out);
    }
}
