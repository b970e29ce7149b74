#include "launch/shell.h"

#include <stdlib.h>
#include <string.h>

// Starts again what was killed, or lost its peers or its session; not what ended by itself, or
// found its command line, its model or its data wrong: as supervise.c does.
static const char functions[] = //
    "# await PROCESS: its status; signals that come meanwhile are handled.\n"
    "await() {\n"
    "    while :; do\n"
    "        wait \"$1\"\n"
    "        status=$?\n"
    "        kill -0 \"$1\" 2>/dev/null || return \"$status\"\n"
    "    done\n"
    "}\n"
    "\n"
    "stop_child() {\n"
    "    stop=1\n"
    "    kill \"$child\" 2>/dev/null\n"
    "}\n"
    "\n"
    "# keep_on TIMES COMMAND...: runs it, and again when it was killed or lost its peers or its\n"
    "# session (if it $leads only when it was killed), each time a little later. If it is $deaf,\n"
    "# SIGTERM is not for it, but for the controller.\n"
    "keep_on() {\n"
    "    left=$1 pause=1 child= stop=\n"
    "    shift\n"
    "    if [ \"${deaf-}\" ]; then trap \"\" TERM INT; else trap stop_child TERM; fi\n"
    "    while :; do\n"
    "        \"$@\" &\n"
    "        child=$!\n"
    "        await \"$child\" && return\n"
    "        case $status in\n"
    "        12[89] | 1[3-9]?) ;;\n"
    "        69 | 70 | 74 | 75) [ ! \"${leads-}\" ] || return \"$status\" ;;\n"
    "        *) return \"$status\" ;;\n"
    "        esac\n"
    "        [ \"$left\" -gt 0 ] && [ ! \"$stop\" ] || return \"$status\"\n"
    "        rest=$pause\n"
    "        [ \"$status\" != 75 ] || [ \"$rest\" -ge 5 ] || rest=5\n"
    "        echo \"$1: status $status; again in $rest s\" >&2\n"
    "        sleep \"$rest\"\n"
    "        [ ! \"$stop\" ] || return \"$status\"\n"
    "        left=$((left - 1))\n"
    "        [ \"$pause\" -ge 30 ] || pause=$((pause * 2))\n"
    "    done\n"
    "}\n"
    "\n"
    "# keep TIMES COMMAND...: the same. When a $role ends for good, and was not told to stop, the\n"
    "# file $lost has a line of it: of a worker always, with 0 where it left as it should.\n"
    "keep() {\n"
    "    keep_on \"$@\"\n"
    "    [ \"${role-}\" ] && [ ! \"$stop\" ] || return \"$status\"\n"
    "    case $status in\n"
    "    0 | 1) [ \"$role\" != worker ] || echo \"$role 0\" >>\"$lost\" ;;\n"
    "    70 | 74 | 75 | 12[89] | 1[3-9]?) echo \"$role 69\" >>\"$lost\" ;;\n"
    "    *) echo \"$role $status\" >>\"$lost\" ;;\n"
    "    esac\n"
    "    return \"$status\"\n"
    "}\n";

// A run cannot go on without a server, nor when the last of its workers cannot work.
static const char watch[] = //
    "\n"
    "# is_lost: whether a server has ended for good, or the last worker could not work; $why is\n"
    "# the one.\n"
    "is_lost() {\n"
    "    [ -s \"$lost\" ] || return\n"
    "    why=$(sed '/^worker/d; q' \"$lost\")\n"
    "    [ ! \"$why\" ] || return 0\n"
    "    why=$(tail -n 1 \"$lost\")\n"
    "    [ \"$(grep -c . \"$lost\")\" -ge %d ] && [ \"$why\" != 'worker 0' ]\n"
    "}\n"
    "\n"
    "# Then the controllers are told to stop, which would wait for ever.\n"
    "watch() {\n"
    "    until is_lost; do sleep 1; done\n"
    "    echo \"${why%% *} ended with status ${why#* }, and the run with it; see ${lost%%/*}\" "
    ">&2\n"
    "    %s\n"
    "}\n";

// Of several controllers one that was killed and is started again may not find the others any more:
// the run has ended when most have.
static const char await_most[] = //
    "\n"
    "# await_most PROCESS...: until most of them have ended; the status of one that has.\n"
    "await_most() {\n"
    "    while :; do\n"
    "        ended=0\n"
    "        for one; do\n"
    "            kill -0 \"$one\" 2>/dev/null || ended=$((ended + 1)) last=$one\n"
    "        done\n"
    "        [ \"$ended\" -le $(($# / 2)) ] || break\n"
    "        sleep 1\n"
    "    done\n"
    "    wait \"$last\"\n"
    "    status=$?\n"
    "}\n";

void shell_functions(struct grow *out, const struct launch *launch) {
    grow_put(out, functions, sizeof functions - 1);
    if (launch_count(launch, PROTO_ROLE_CONTROLLER) > 1)
        grow_put(out, await_most, sizeof await_most - 1);
}

void shell_lost(struct grow *out, const struct launch *launch) {
    struct words file = {0};
    words_format(&file, "%s/" LAUNCH_LOGS "/lost", launch->folder);
    grow_format(out, "lost=");
    shell_line(out, &file);
    words_free(&file);
}

void shell_watch(struct grow *out, const struct launch *launch, const char *stop) {
    grow_format(out, watch, launch->workers, stop);
    grow_format(out, "\n");
    shell_lost(out, launch);
    grow_format(out, "\nrm -f \"$lost\"\n");
}

// Again until the script ends: a controller that was told may die before it has saved.
void shell_ask(struct grow *out, const struct launch *launch) {
    struct words down = {0};
    launch_down(launch, &down);
    grow_format(out,
                "\n# Whoever leads the run saves and ends it.\nask() {\n    while :; do\n        ");
    shell_line(out, &down);
    grow_format(out, "\n        sleep 1\n    done\n}\n");
    words_free(&down);
}

// A line of plain words, which are freed, and what goes on with the last one as it is.
static void put_line_and_rest(struct grow *out, struct words *words, const char *rest) {
    char *line = words->failed ? NULL : words_line(words->items, words->count);
    out->failed |= !line;
    grow_format(out, "%s%s\n", line ? line : "", rest);
    free(line);
    words_free(words);
}

static void put_words_line(struct grow *out, struct words *words) {
    put_line_and_rest(out, words, "");
}

void shell_prepare(struct grow *out, const struct launch *launch) {
    struct words make = {0}, clear = {0};
    words_add(&make, "mkdir");
    words_add(&make, "-p");
    words_format(&make, "%s/" LAUNCH_LOGS, launch->folder);
    if (launch->store && !launch->remote_stores)
        words_add(&make, launch->store);
    put_words_line(out, &make);
    words_add(&clear, "rm");
    words_add(&clear, "-f");
    words_format(&clear, "%s/" LAUNCH_PORT_FILE, launch->folder);
    bool clears = !launch_keeps_states(launch);
    if (clears)
        words_format(&clear, "%s/" LAUNCH_STATE, launch->folder);
    for (int i = 1; i <= launch->controllers && launch->controllers > 1 && clears; i++)
        words_format(&clear, "%s/" LAUNCH_STATE_OF, launch->folder, i);
    put_words_line(out, &clear);
}

void shell_forget(struct grow *out, const struct launch *launch) {
    struct words clear = {0}, checkpoints = {0};
    static const char *const files[] = {"DONE", "latest", "metrics.jsonl"};
    words_add(&clear, "rm");
    words_add(&clear, "-f");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        words_format(&clear, "%s/%s", launch->folder, files[i]);
    for (int i = 1; i <= launch->data_servers; i++)
        words_format(&clear, "%s/serve-%d" LAUNCH_CURSOR, launch->folder, i);
    put_words_line(out, &clear);
    words_add(&checkpoints, "rm");
    words_add(&checkpoints, "-rf");
    words_format(&checkpoints, "%s/", launch->folder);
    put_line_and_rest(out, &checkpoints, "ckpt-*");
}

// Text with holes, as a shell fills them.
static void put_open(struct grow *out, const char *text) {
    grow_put(out, "\"", 1);
    for (; *text; text++) {
        const char one[] = {*text, 0};
        if (strchr("\\\"$`", *text))
            grow_put(out, "\\", 1);
        launch_fill(out, one, "$n", "$host");
    }
    grow_put(out, "\"", 1);
}

void shell_line(struct grow *out, const struct words *command) {
    const char holes[] = {LAUNCH_NUMBER, LAUNCH_HOST, 0};
    out->failed |= command->failed;
    for (size_t i = 0; i < command->count; i++) {
        if (i)
            grow_put(out, " ", 1);
        if (strpbrk(command->items[i], holes))
            put_open(out, command->items[i]);
        else
            words_quote(out, command->items[i]);
    }
}

void shell_keep(struct grow *out, enum proto_role role, const struct words *command) {
    static const int times[] = {[LAUNCH_AGAIN] = 1000, [LAUNCH_RETRY] = LAUNCH_RETRIES};
    if (role == PROTO_ROLE_CONTROLLER)
        grow_format(out, "leads=1 ");
    else
        grow_format(out, "role=%s ", launch_short(role));
    grow_format(out, "keep %d ", times[launch_policy(role)]);
    shell_line(out, command);
}

void shell_await(struct grow *out, const struct launch *launch) {
    bool several = launch_count(launch, PROTO_ROLE_CONTROLLER) > 1;
    grow_format(out, "\nwatch &\nwatching=$!\n%s\n",
                several ? "await_most $controllers" : "await $controllers");
    grow_format(out,
                "result=$status\n"
                "kill \"$watching\" $asked 2>/dev/null\n"
                "case $result in\n"
                "69 | 75) is_lost && result=${why#* } ;; # stopped, but not by a person\n"
                "esac\n"
                "for second in 1 2 3 4 5 6 7 8 9 10; do\n"
                "    left=\n"
                "    for one in %s$others; do kill -0 \"$one\" 2>/dev/null && left=\"$left "
                "$one\"; done\n"
                "    [ \"$left\" ] && sleep 1 || break\n"
                "done\n",
                several ? "$controllers " : "");
}
