// Words of a command line, as sh(1) itself reads them back.
#include <stdio.h>
#include <stdlib.h>

#include "../helper/tap.h"
#include "core/words.h"

// What a shell makes of the line, a word a line.
static void read_back(const char *line, char *out, size_t size) {
    struct grow command = {0};
    grow_format(&command, "printf '%%s\\n' %s", line);
    FILE *shell = popen(command.text, "r");
    out[shell ? fread(out, 1, size - 1, shell) : 0] = 0;
    if (shell)
        pclose(shell);
    free(command.text);
}

static void test_quote(struct tap *tap) {
    TEST(tap, "what needs no quotes gets none", {
        char *items[] = {"adam-ps", "--listen", "tcp://n01:0", "a=b,c%d@e+f"};
        char *line = words_line(items, 4);
        CHECK_TEXT(tap, line, "adam-ps --listen tcp://n01:0 a=b,c%d@e+f");
        free(line);
    });
    TEST(tap, "a shell reads back every word as it was", {
        char *items[] = {"a b", "it's", "$(date)", "`x`", "\\", "\"",
                         "*",   "",     "~",       "#",   "'",  "e;f&"};
        char *line = words_line(items, sizeof items / sizeof *items);
        char back[256];
        read_back(line, back, sizeof back);
        CHECK_TEXT(tap, back, "a b\nit's\n$(date)\n`x`\n\\\n\"\n*\n\n~\n#\n'\ne;f&\n");
        free(line);
    });
}

static void test_words(struct tap *tap) {
    TEST(tap, "words end with NULL, and a command has the program's own name", {
        struct words words = {0};
        words_add(&words, "build/adam-ctl");
        words_format(&words, "%s-%d", "ps", 2);
        words_format(&words, "%s", "");
        CHECK_INT(tap, words.count, 3);
        CHECK_TEXT(tap, words.items[1], "ps-2");
        CHECK_TEXT(tap, words.items[2], "");
        CHECK(tap, !words.items[3] && !words.failed);
        char *line = words_command("adam-ctl", 3, words.items);
        CHECK_TEXT(tap, line, "adam-ctl ps-2 ''");
        free(line);
        words_free(&words);
    });
}

int main(void) {
    struct tap tap = {0};
    test_quote(&tap);
    test_words(&tap);
    return tap_done(&tap);
}
