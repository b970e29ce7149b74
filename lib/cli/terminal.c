#include "cli/terminal.h"

#include <string.h>
#include <sys/ioctl.h>

#define HOME "\033[H"
#define CLEAR_LINE "\033[K"
#define CLEAR_BELOW "\033[J"

struct terminal_size terminal_size(int fd) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 1)
        return (struct terminal_size){size.ws_col, size.ws_row};
    return (struct terminal_size){80, 24};
}

// Line by line, so that nothing flickers. The last row stays free: an end of line there
// would move all others up.
void terminal_page(FILE *out, struct terminal_size size, const char *text) {
    fputs(HOME, out);
    for (int row = 1; *text && row < size.rows; row++) {
        int length = (int)strcspn(text, "\n");
        int shown = length < size.columns ? length : size.columns - 1;
        while (shown > 0 && shown < length && (text[shown] & 0xc0) == 0x80)
            shown--; // no character is cut in two
        fprintf(out, "%.*s" CLEAR_LINE "\n", shown, text);
        text += length + (text[length] == '\n');
    }
    fputs(CLEAR_BELOW, out);
}

bool terminal_cuts(struct terminal_size size, const char *text) {
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (length >= (size_t)size.columns)
            return true;
    }
    return false;
}
