// One table of options a program (or subcommand): it is the parser, --help,
// the completions and what the manual pages are checked against.
//
// A command fills a struct with defaults, builds the rows on its stack with
// pointers into that struct, and calls cli_parse. There is no global state.
#ifndef ADAM_CLI_OPTION_H
#define ADAM_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum option_kind {
    OPTION_HEADING, // a line of --help; `help` is its text
    OPTION_FLAG,    // bool
    OPTION_INT,     // int64_t within [low, high]
    OPTION_REAL,    // double within [low, high]
    OPTION_BYTES,   // uint64_t: 4096, 64K, 16M, 2G
    OPTION_TIME,    // double, seconds above 0: 30, 30s, 1.5m, 2h
    OPTION_TEXT,    // const char *
    OPTION_MAYBE,   // the same, only as --name=VALUE; "" for --name alone
    OPTION_LIST,    // struct option_list: may be given again and again
    OPTION_CHOICE,  // const char *, one of choices
};

struct option_list {
    const char **items; // freed with free()
    size_t count;
};

// Word `index`, from 0, that a value may begin with; NULL behind the last.
typedef const char *option_words(size_t index);

// --help adds by itself what the row knows: the choices, the default, that a
// LIST may be repeated.
struct option_row {
    enum option_kind kind;
    char letter;       // 0: none
    const char *name;  // without the dashes
    const char *value; // metavariable; one with FILE or DIR in it completes to file names
    void *target;
    double low, high;           // -INFINITY and INFINITY where there is no bound
    const char *const *choices; // NULL-terminated
    const char *standard;       // default as --help shows it; NULL: none shown
    const char *help;           // one line, lower case, no full stop
    // For completion alone. With '=' in the metavariable they are its KEYs, and with '.' in
    // it the keys of a model's layers; else names of operations, separated by ';'.
    option_words *words;
};

// clang-format off
#define HEADING(text) {.kind = OPTION_HEADING, .help = text}
#define FLAG(letter, name, target, help) {OPTION_FLAG, letter, name, NULL, target, 0, 0, NULL, NULL, help, NULL}
#define INT(letter, name, value, target, low, high, standard, help) {OPTION_INT, letter, name, value, target, low, high, NULL, standard, help, NULL}
#define REAL(letter, name, value, target, low, high, standard, help) {OPTION_REAL, letter, name, value, target, low, high, NULL, standard, help, NULL}
#define BYTES(letter, name, value, target, standard, help) {OPTION_BYTES, letter, name, value, target, 0, 0, NULL, standard, help, NULL}
#define TIME(letter, name, value, target, standard, help) {OPTION_TIME, letter, name, value, target, 0, 0, NULL, standard, help, NULL}
#define TEXT(letter, name, value, target, standard, help) {OPTION_TEXT, letter, name, value, target, 0, 0, NULL, standard, help, NULL}
#define MAYBE(name, value, target, standard, help) {OPTION_MAYBE, 0, name, value, target, 0, 0, NULL, standard, help, NULL}
#define LIST(letter, name, value, target, help) {OPTION_LIST, letter, name, value, target, 0, 0, NULL, NULL, help, NULL}
#define CHOICE(letter, name, value, target, choices, standard, help) {OPTION_CHOICE, letter, name, value, target, 0, 0, choices, standard, help, NULL}
#define LIST_OF(letter, name, value, target, words, help) {OPTION_LIST, letter, name, value, target, 0, 0, NULL, NULL, help, words}
#define TEXT_OF(letter, name, value, target, words, standard, help) {OPTION_TEXT, letter, name, value, target, 0, 0, NULL, standard, help, words}
// clang-format on

// A program, or one subcommand of it ("adam-prep stat").
struct command {
    const char *name;     // "adam-prep" or "adam-prep stat"
    const char *synopsis; // one or more lines, without the name
    const char *about;    // one line
    const char *more;     // text behind the options in --help; NULL: none
    const struct option_row *rows;
    size_t row_count;
    const char *operand; // metavariable of the operands for completion: FILE, DIR, or NULL
    option_words *keys;  // the operands behind the first are KEY=VALUE of these; NULL: like it
    bool *given;         // of each row, set to true where the command line has it; NULL: unwanted
};

enum cli_next {
    CLI_RUN,  // go on
    CLI_DONE, // --help, --version or --completion was answered: exit with STATUS_OK
    CLI_FAIL, // usage: err has the sentence; exit with STATUS_USAGE
};

// Parses argv[1..] into the targets. Options and operands may be mixed; "--"
// ends options; a long name may be shortened while it is unique; a value may
// stand behind '=' or in the next word. Operands are moved to the end of argv,
// *operands is the index of the first.
// Every command has, beside its rows: -h --help (on stdout) and -V --version;
// every program also has --completion bash|zsh|fish, which prints the script.
enum cli_next cli_parse(const struct command *command, int argc, char **argv, int *operands,
                        struct error *err);

// The same for a program with subcommands, whose names are "adam-prep stat" and
// so on. *chosen is the one that argv[1] names, or else `program` itself, which
// is an error when it has no rows of its own (adam-ctl). `commands` also feed
// --help and --completion of the program. *operands is an index into argv.
enum cli_next cli_parse_program(const struct command *program, const struct command *commands,
                                size_t command_count, int argc, char **argv,
                                const struct command **chosen, int *operands, struct error *err);

#endif
