// Option tables, help, completions, talk, signals, the progress line.
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "cli/option.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/talk.h"
#include "core/error.h"

enum { MOST_WORDS = 16, ROW_COUNT = 11 };

static const char *const kinds[] = {"folder", "idx", "cifar", NULL};

// A command line, parsed into its own targets.
struct line {
    int64_t copies;
    double rate;
    uint64_t memory;
    const char *output, *kind, *keep;
    bool json, quiet;
    struct option_list files;
    struct option_row rows[ROW_COUNT];
    struct command command;
    char words[512], *argv[MOST_WORDS];
    int argc, operands;
    enum cli_next next;
    struct error err;
};

static void line_prepare(struct line *line) {
    *line = (struct line){.copies = 1, .rate = 0.1, .output = "-", .kind = "folder"};
    struct option_row rows[ROW_COUNT] = {
        HEADING("Input"),
        LIST(0, "files-from", "FILE", &line->files, "read paths from a file"),
        CHOICE('f', "from", "KIND", &line->kind, kinds, "folder", "kind of input"),
        HEADING("Output"),
        TEXT('o', "output", "FILE", &line->output, "-", "where the records go"),
        INT('c', "copies", "N", &line->copies, 1, 1000000, "1", "copies of each"),
        REAL('r', "rate", "RATE", &line->rate, 0, INFINITY, "0.1", "isn't [quite] a 100%: \\ rate"),
        BYTES(0, "memory", "SIZE", &line->memory, NULL, "memory"),
        MAYBE("keep", "DIR", &line->keep, "not", "keep what is made"),
        FLAG('j', "json", &line->json, "print JSON"),
        FLAG('q', "quiet", &line->quiet, "say nothing"),
    };
    memcpy(line->rows, rows, sizeof rows);
    line->command = (struct command){.name = "adam-try",
                                     .synopsis = "[options] FILE...\n- < FILE",
                                     .about = "Tries the parser.",
                                     .more = "Examples:\n  adam-try x",
                                     .rows = line->rows,
                                     .row_count = ROW_COUNT,
                                     .operand = "FILE"};
}

// Splits a copy of `words` at blanks behind argv[0].
static void line_split(struct line *line, const char *words) {
    snprintf(line->words, sizeof line->words, "%s", words);
    line->argv[line->argc++] = "adam-try";
    for (char *word = strtok(line->words, " "); word; word = strtok(NULL, " "))
        line->argv[line->argc++] = word;
}

static struct line *parse(struct line *line, const char *words) {
    line_prepare(line);
    line_split(line, words);
    line->next = cli_parse(&line->command, line->argc, line->argv, &line->operands, &line->err);
    return line;
}

#define CHECK_REFUSED(tap, words, message)                                                         \
    do {                                                                                           \
        struct line line_;                                                                         \
        parse(&line_, words);                                                                      \
        CHECK_INT(tap, line_.next, CLI_FAIL);                                                      \
        CHECK_INT(tap, line_.err.status, STATUS_USAGE);                                            \
        CHECK_TEXT(tap, line_.err.text, message);                                                  \
        free(line_.files.items);                                                                   \
    } while (0)

static void test_values(struct tap *tap) {
    struct line line;
    TEST(tap, "every kind of option takes its value, in all spellings", {
        parse(&line, "--copies 4 --rate=1/4 --memory 16M --from idx -o - -jq");
        CHECK_INT(tap, line.next, CLI_RUN);
        CHECK_INT(tap, line.copies, 4);
        CHECK_NEAR(tap, line.rate, 0.25, 0);
        CHECK_INT(tap, line.memory, 16 << 20);
        CHECK_TEXT(tap, line.kind, "idx");
        CHECK_TEXT(tap, line.output, "-");
        CHECK(tap, line.json && line.quiet);
        CHECK_INT(tap, line.operands, line.argc);
        parse(&line, "-c7 -qjo out.arec -r 2");
        CHECK_INT(tap, line.copies, 7);
        CHECK_TEXT(tap, line.output, "out.arec");
        CHECK_NEAR(tap, line.rate, 2, 0);
        CHECK(tap, line.json && line.quiet);
    });
    TEST(tap, "what is not given keeps its default; of two values the last one counts", {
        parse(&line, "--copies 3 --copies 5");
        CHECK_INT(tap, line.copies, 5);
        CHECK_NEAR(tap, line.rate, 0.1, 0);
        CHECK_TEXT(tap, line.kind, "folder");
        CHECK(tap, !line.json);
    });
    TEST(tap, "sizes have units of 1024", {
        CHECK_INT(tap, parse(&line, "--memory 4096")->memory, 4096);
        CHECK_INT(tap, parse(&line, "--memory 64K")->memory, 65536);
        CHECK_INT(tap, parse(&line, "--memory 2G")->memory, 2LL << 30);
    });
    TEST(tap, "a name may be shortened while it is unique", {
        CHECK_INT(tap, parse(&line, "--cop 4")->copies, 4);
        CHECK_TEXT(tap, parse(&line, "--out=x")->output, "x");
        CHECK_TEXT(tap, parse(&line, "--fr cifar")->kind, "cifar");
    });
    TEST(tap, "a value that may be left out stands behind '=', and leaves operands alone", {
        CHECK(tap, !parse(&line, "x")->keep);
        CHECK_TEXT(tap, parse(&line, "--keep x")->keep, "");
        CHECK_INT(tap, line.argc - line.operands, 1);
        CHECK_TEXT(tap, parse(&line, "--keep=x y")->keep, "x");
        CHECK_INT(tap, line.argc - line.operands, 1);
    });
    TEST(tap, "a value may begin with a dash", {
        CHECK_TEXT(tap, parse(&line, "-o -x")->output, "-x");
        CHECK_TEXT(tap, parse(&line, "--output=--json")->output, "--json");
        CHECK(tap, !line.json);
    });
}

static void test_operands(struct tap *tap) {
    struct line line;
    TEST(tap, "operands and options mix; operands stay in order at the end", {
        parse(&line, "a --copies 4 b - -j c -o x");
        CHECK_INT(tap, line.next, CLI_RUN);
        CHECK_INT(tap, line.argc - line.operands, 4);
        CHECK_TEXT(tap, line.argv[line.operands], "a");
        CHECK_TEXT(tap, line.argv[line.operands + 1], "b");
        CHECK_TEXT(tap, line.argv[line.operands + 2], "-");
        CHECK_TEXT(tap, line.argv[line.operands + 3], "c");
        CHECK_TEXT(tap, line.argv[1], "--copies");
        CHECK_TEXT(tap, line.argv[5], "x");
    });
    TEST(tap, "-- ends options, once", {
        parse(&line, "a -j -- -q --json --");
        CHECK(tap, line.json && !line.quiet);
        CHECK_INT(tap, line.argc - line.operands, 4);
        CHECK_TEXT(tap, line.argv[line.operands], "a");
        CHECK_TEXT(tap, line.argv[line.operands + 1], "-q");
        CHECK_TEXT(tap, line.argv[line.operands + 3], "--");
    });
    TEST(tap, "a list grows in the order given", {
        parse(&line, "--files-from x y --files-from=z");
        CHECK_INT(tap, line.files.count, 2);
        CHECK_TEXT(tap, line.files.items[0], "x");
        CHECK_TEXT(tap, line.files.items[1], "z");
        CHECK_INT(tap, line.argc - line.operands, 1);
        free(line.files.items);
    });
}

static void test_refusals(struct tap *tap) {
    TEST(tap, "an unknown option is named, with the nearest one", {
        CHECK_REFUSED(tap, "--copis 3", "unknown option '--copis'; did you mean '--copies'?");
        CHECK_REFUSED(tap, "--copis=3", "unknown option '--copis'; did you mean '--copies'?");
        CHECK_REFUSED(tap, "--zork", "unknown option '--zork'; 'adam-try --help' lists them all");
        CHECK_REFUSED(tap, "-jx", "unknown option '-x'; 'adam-try --help' lists them all");
    });
    TEST(tap, "an ambiguous abbreviation names two that it could be", {
        CHECK_REFUSED(tap, "--f x",
                      "ambiguous option '--f'; it could be '--files-from' or '--from'");
    });
    TEST(tap, "a missing and a superfluous value are named", {
        CHECK_REFUSED(tap, "--copies", "option '--copies' needs a value: --copies N");
        CHECK_REFUSED(tap, "-jc", "option '-c' needs a value: -c N");
        CHECK_REFUSED(tap, "--json=yes", "option '--json' takes no value");
    });
    TEST(tap, "a value of the wrong kind or outside the range is refused whole", {
#define WHOLE "option '--copies' needs a whole number from 1 to 1000000, not "
        CHECK_REFUSED(tap, "--copies x", WHOLE "'x'");
        CHECK_REFUSED(tap, "--copies 0", WHOLE "'0'");
        CHECK_REFUSED(tap, "--copies 1000001", WHOLE "'1000001'");
        CHECK_REFUSED(tap, "--copies 4x", WHOLE "'4x'");
        CHECK_REFUSED(tap, "--copies=", WHOLE "''");
        CHECK_REFUSED(tap, "--rate -1", "option '--rate' needs a number of at least 0, not '-1'");
        CHECK_REFUSED(tap, "-r nan", "option '-r' needs a number of at least 0, not 'nan'");
#define SIZE "option '--memory' needs a size such as 4096, 64K, 16M or 2G, not "
        CHECK_REFUSED(tap, "--memory 12X", SIZE "'12X'");
        CHECK_REFUSED(tap, "--memory -4K", SIZE "'-4K'");
        CHECK_REFUSED(tap, "--memory G", SIZE "'G'");
        CHECK_REFUSED(tap, "--memory=", SIZE "''");
        CHECK_REFUSED(tap, "--memory 99999999999G", SIZE "'99999999999G'");
        CHECK_REFUSED(tap, "--from tarball",
                      "option '--from' needs one of folder, idx, cifar, not 'tarball'");
        CHECK_REFUSED(tap, "--from cifer",
                      "option '--from' needs one of folder, idx, cifar, not 'cifer'; "
                      "did you mean 'cifar'?");
    });
    TEST(tap, "times have units", {
        static const struct {
            const char *text;
            double seconds; // 0: none
        } times[] = {{"30", 30}, {"30s", 30}, {"1.5m", 90}, {"2h", 7200}, {"0", 0},
                     {"-1s", 0}, {"s", 0},    {"", 0},      {"1d", 0},    {"nan", 0}};
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            double seconds = 0;
            struct error err = {0};
            const struct option_row row = TIME(0, "every", "TIME", &seconds, NULL, "pause");
            const struct command command = {.name = "adam-try", .rows = &row, .row_count = 1};
            char *argv[] = {"adam-try", "--every", (char *)times[i].text, NULL};
            int operands;
            enum cli_next next = cli_parse(&command, 3, argv, &operands, &err);
            CHECK_INT(tap, next, times[i].seconds > 0 ? CLI_RUN : CLI_FAIL);
            CHECK(tap, seconds == times[i].seconds);
        }
    });
    TEST(tap, "hostile option names neither overflow nor crash", {
        struct line line;
        char words[300] = "--";
        memset(words + 2, 'a', sizeof words - 3);
        words[sizeof words - 1] = 0;
        CHECK_INT(tap, parse(&line, words)->next, CLI_FAIL);
        CHECK_INT(tap, parse(&line, "--=")->next, CLI_FAIL);
        CHECK_INT(tap, parse(&line, "-\xff")->next, CLI_FAIL);
    });
}

// A program with two subcommands; `with_rows`: it also works without them.
static const struct command *choose(struct line *line, const char *words, bool with_rows) {
    static const struct command commands[] = {
        {.name = "adam-try stat", .synopsis = "FILE", .about = "Counts."},
        {.name = "adam-try sheet", .synopsis = "FILE", .about = "Draws."},
    };
    const struct command *chosen;
    line_prepare(line);
    line_split(line, words);
    line->command.row_count = with_rows ? ROW_COUNT : 0;
    line->next = cli_parse_program(&line->command, commands, 2, line->argc, line->argv, &chosen,
                                   &line->operands, &line->err);
    return chosen;
}

static void test_subcommands(struct tap *tap) {
    struct line line;
    TEST(tap, "the first word chooses the subcommand, and its rows apply", {
        CHECK_TEXT(tap, choose(&line, "sheet a b", false)->name, "adam-try sheet");
        CHECK_INT(tap, line.next, CLI_RUN);
        CHECK_INT(tap, line.operands, 2);
        CHECK_TEXT(tap, choose(&line, "stat --copies 3", true)->name, "adam-try stat");
        CHECK_INT(tap, line.next, CLI_FAIL);
    });
    TEST(tap, "a program with rows of its own runs without a subcommand", {
        CHECK_TEXT(tap, choose(&line, "--copies 3 stat", true)->name, "adam-try");
        CHECK_INT(tap, line.next, CLI_RUN);
        CHECK_INT(tap, line.copies, 3);
        CHECK_TEXT(tap, line.argv[line.operands], "stat");
    });
    TEST(tap, "a program without rows needs a subcommand, and says which exist", {
        choose(&line, "stet x", false);
        CHECK_INT(tap, line.next, CLI_FAIL);
        CHECK_TEXT(tap, line.err.text, "unknown command 'stet'; did you mean 'stat'?");
        choose(&line, "plot", false);
        CHECK_TEXT(tap, line.err.text, "unknown command 'plot'; 'adam-try --help' lists them");
        choose(&line, "", false);
        CHECK_TEXT(tap, line.err.text, "no command given; 'adam-try --help' lists them");
    });
}

static void test_help(struct tap *tap) {
    struct line line;
    char *text = NULL;
    size_t size = 0;
    line_prepare(&line);
    struct command sub = {.name = "adam-try stat", .synopsis = "FILE", .about = "Counts."};
    struct program program = {&line.command, &sub, 1};
    FILE *out = open_memstream(&text, &size);
    help_print(out, &program);
    fclose(out);
    TEST(tap, "help shows usage, commands, columns, choices, defaults and the text behind", {
        static const char wanted[] =
            "usage: adam-try [options] FILE...\n"
            "       adam-try - < FILE\n"
            "\n"
            "Tries the parser.\n"
            "\n"
            "Commands ('adam-try COMMAND --help' tells more):\n"
            "  stat  Counts.\n"
            "\n"
            "Input:\n"
            "      --files-from FILE   read paths from a file (may be repeated)\n"
            "  -f, --from KIND         kind of input: folder, idx, cifar [folder]\n"
            "\n"
            "Output:\n"
            "  -o, --output FILE       where the records go [-]\n"
            "  -c, --copies N          copies of each [1]\n"
            "  -r, --rate RATE         isn't [quite] a 100%: \\ rate [0.1]\n"
            "      --memory SIZE       memory\n"
            "      --keep[=DIR]        keep what is made [not]\n"
            "  -j, --json              print JSON\n"
            "  -q, --quiet             say nothing\n"
            "\n"
            "About the program:\n"
            "  -h, --help              print this text\n"
            "  -V, --version           print the version and the processor features in use\n"
            "      --completion SHELL  print the completion script for a shell: bash, zsh, fish\n"
            "\n"
            "Examples:\n"
            "  adam-try x\n";
        CHECK_TEXT(tap, text, wanted);
    });
    free(text);
}

// What talk_error writes for a sentence.
static char *said(const char *sentence) {
    char *text = NULL;
    size_t size = 0;
    FILE *saved = stderr;
    struct error err = {0};
    error_set(&err, STATUS_DATA, "%s", sentence);
    stderr = open_memstream(&text, &size);
    int status = talk_error("adam-try", &err);
    fclose(stderr);
    stderr = saved;
    return status == STATUS_DATA ? text : NULL;
}

static void test_talk(struct tap *tap) {
    static const struct {
        const char *sentence, *wanted;
    } cases[] = {
        {"cannot read 'x'", "adam-try: error: cannot read 'x'\n"},
        {"m.net:7:14: error: conv: no\n  conv\n  ^", "m.net:7:14: error: conv: no\n  conv\n  ^\n"},
        {"my list.tsv:7: error: no label", "my list.tsv:7: error: no label\n"},
        {"list.tsv:7: no label", "list.tsv:7: no label\n"},
        {"x.tar:a.png:512: no label", "x.tar:a.png:512: no label\n"},
        {"tcp://n:7001: refused", "adam-try: error: tcp://n:7001: refused\n"},
        {"no answer from tcp://n:7001: refused",
         "adam-try: error: no answer from tcp://n:7001: refused\n"},
        {"a:b: c", "adam-try: error: a:b: c\n"},
    };
    TEST(tap, "an error has the program in front, one about a place in a file has the place", {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char *text = said(cases[i].sentence);
            CHECK_TEXT(tap, text, cases[i].wanted);
            free(text);
        }
    });
}

// The wait status of a child that runs `child`.
static int run_child(void (*child)(void)) {
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(99);
    }
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void stopped_once(void) {
    stop_on_signals(true);
    bool before = stop_requested();
    raise(SIGPIPE);
    raise(SIGTERM);
    _exit(!before && stop_requested() ? 75 : 1);
}

static void stopped_twice(void) {
    stop_on_signals(true);
    raise(SIGTERM);
    raise(SIGINT);
}

static void filter_with_broken_pipe(void) {
    signal(SIGPIPE, SIG_IGN);
    stop_on_signals(false);
    raise(SIGPIPE);
}

static void background_job(void) {
    signal(SIGINT, SIG_IGN);
    stop_on_signals(true);
    raise(SIGINT);
    _exit(stop_requested() ? 1 : 0);
}

static void test_signals(struct tap *tap) {
    TEST(tap, "a first SIGTERM asks to stop, a second signal ends the process", {
        int status = run_child(stopped_once);
        CHECK(tap, WIFEXITED(status));
        CHECK_INT(tap, WEXITSTATUS(status), 75);
        status = run_child(stopped_twice);
        CHECK(tap, WIFSIGNALED(status));
        CHECK_INT(tap, WTERMSIG(status), SIGINT);
    });
    TEST(tap, "a filter dies of SIGPIPE even when its parent ignored it", {
        int status = run_child(filter_with_broken_pipe);
        CHECK(tap, WIFSIGNALED(status));
        CHECK_INT(tap, WTERMSIG(status), SIGPIPE);
    });
    TEST(tap, "a background job of a script keeps ignoring SIGINT",
         { CHECK_INT(tap, run_child(background_job), 0); });
}

static void full_disk(void) {
    freopen("/dev/full", "w", stdout);
    freopen("/dev/null", "w", stderr);
    puts("results");
    _exit(talk_finish("adam-try", STATUS_OK));
}

static void full_disk_after_stop(void) {
    freopen("/dev/full", "w", stdout);
    freopen("/dev/null", "w", stderr);
    puts("results");
    _exit(talk_finish("adam-try", STATUS_STOPPED));
}

static void closed_and_unused(void) {
    close(STDOUT_FILENO);
    _exit(talk_finish("adam-try", STATUS_OK));
}

static void test_finish(struct tap *tap) {
    TEST(tap, "a full disk is noticed at the end, unless the status already says more", {
        CHECK_INT(tap, WEXITSTATUS(run_child(full_disk)), STATUS_IO);
        CHECK_INT(tap, WEXITSTATUS(run_child(full_disk_after_stop)), STATUS_STOPPED);
        CHECK_INT(tap, WEXITSTATUS(run_child(closed_and_unused)), STATUS_OK);
    });
}

// All that a child with a terminal on its stderr writes there.
static size_t on_terminal(void (*child)(void), char *text, size_t size) {
    int terminal;
    size_t used = 0;
    struct winsize narrow = {.ws_row = 24, .ws_col = 20};
    fflush(stdout);
    pid_t pid = forkpty(&terminal, NULL, NULL, &narrow);
    if (pid == 0) {
        child();
        _exit(0);
    }
    // The far end closing gives EIO, which ends the loop as well.
    for (ssize_t n; used < size - 1 && (n = read(terminal, text + used, size - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = 0;
    close(terminal);
    waitpid(pid, NULL, 0);
    return used;
}

static void draw_progress(void) {
    struct progress progress;
    setenv("TERM", "xterm", 1);
    progress_start(&progress, false);
    progress_line(&progress, "a line that is longer than the terminal is wide");
    progress_clear(&progress);
    progress_clear(&progress);
}

static void draw_on_dumb_terminal(void) {
    struct progress progress;
    setenv("TERM", "dumb", 1);
    progress_start(&progress, false);
    progress_line(&progress, "plain");
    progress_clear(&progress);
}

static void test_progress(struct tap *tap) {
    char text[256];
    TEST(tap, "on a terminal the line is cut to its width, redrawn in place and cleared once", {
        on_terminal(draw_progress, text, sizeof text);
        CHECK_TEXT(tap, text, "\ra line that is long\033[K\r\033[K");
        on_terminal(draw_on_dumb_terminal, text, sizeof text);
        CHECK_TEXT(tap, text, "plain\r\n");
    });
    TEST(tap, "elsewhere lines come at doubling intervals, and none when quiet", {
        struct progress progress = {.interval = 1};
        FILE *saved = stderr;
        stderr = fopen("/dev/null", "w");
        progress_line(&progress, "%d", 1);
        progress_line(&progress, "%d", 2);
        fclose(stderr);
        stderr = saved;
        CHECK_NEAR(tap, progress.interval, 4, 0);
        CHECK(tap, !progress_due(&progress));
        progress.last -= 5;
        CHECK(tap, progress_due(&progress));
        progress.quiet = true;
        CHECK(tap, !progress_due(&progress));
    });
    TEST(tap, "durations are short and bounded", {
        progress_duration(text, 12.9);
        CHECK_TEXT(tap, text, "12s");
        progress_duration(text, 200);
        CHECK_TEXT(tap, text, "3m20s");
        progress_duration(text, 3900);
        CHECK_TEXT(tap, text, "1h05m");
        progress_duration(text, (double)NAN);
        CHECK_TEXT(tap, text, "?");
        progress_duration(text, 1e300);
        CHECK_TEXT(tap, text, "?");
        progress_duration(text, -1);
        CHECK_TEXT(tap, text, "0s");
    });
}

int main(void) {
    struct tap tap = {0};
    test_values(&tap);
    test_operands(&tap);
    test_refusals(&tap);
    test_subcommands(&tap);
    test_help(&tap);
    test_talk(&tap);
    test_signals(&tap);
    test_finish(&tap);
    test_progress(&tap);
    return tap_done(&tap);
}
