// A run as a script of sh(1).
#include <stdlib.h>

#include "launch/schedulers.h"
#include "launch/shell.h"

static const char stopping[] = //
    "\n"
    "# The first signal stops the run through the controller, which saves; a second one ends\n"
    "# all of it.\n"
    "asked=\n"
    "stop() {\n"
    "    trap 'kill $controllers $others $asked' TERM INT HUP\n"
    "    %s\n"
    "}\n"
    "trap stop TERM INT HUP\n"
    "\n"
    "controllers= others=\n";

// Of several controllers nobody here knows which one leads.
static void put_stop(struct grow *out, const struct launch *launch) {
    bool several = launch_count(launch, PROTO_ROLE_CONTROLLER) > 1;
    if (several)
        shell_ask(out, launch);
    // One that does not heed the first signal in time is ended by the second.
    shell_watch(out, launch,
                several ? "ask" : "kill $controllers; sleep 10; kill $controllers $others");
    grow_format(out, stopping, several ? "ask &\n    asked=$!" : "kill $controllers");
}

// The controller tells the others when it is over; who did not hear it is told here.
static const char ending[] = //
    "[ ! \"$left\" ] || kill $left\n"
    "wait\n"
    "exit \"$result\"\n";

static void put_background_process(struct grow *out, const struct launch *launch,
                                   enum proto_role role, int number) {
    struct words command = {0}, log = {0};
    launch_process(launch, role, number, "localhost", &command);
    launch_log(launch, role, number, &log);
    shell_keep(out, role, &command);
    grow_format(out, " >>");
    shell_line(out, &log);
    const char *list = role == PROTO_ROLE_CONTROLLER ? "controllers" : "others";
    grow_format(out, " 2>&1 &\n%s=\"$%s $!\"\n", list, list);
    words_free(&command);
    words_free(&log);
}

char *schedulers_sh(const struct launch *launch, const char *folder) {
    struct grow out = {0};
    grow_format(&out,
                "#!/bin/sh\n"
                "# A run with %d data servers, %d parameter servers and %d workers; made by "
                "adam-ctl sh.\n"
                "# Its status is the controller's: 0 done, 3 diverged, 75 stopped and saved.\n"
                "set -u\ncd ",
                launch->data_servers, launch->parameter_servers, launch->workers);
    words_quote(&out, folder);
    grow_format(&out, " || exit\n");
    shell_prepare(&out, launch);
    if (launch->force)
        shell_forget(&out, launch);
    grow_format(&out, "\n");
    shell_functions(&out, launch);
    put_stop(&out, launch);
    for (size_t i = 0; i < LAUNCH_ROLES; i++)
        for (int n = 1; n <= launch_count(launch, launch_roles[i]); n++)
            put_background_process(&out, launch, launch_roles[i], n);
    shell_await(&out, launch);
    grow_put(&out, ending, sizeof ending - 1);
    return grow_take(&out);
}
