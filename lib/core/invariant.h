// What holds unless the program is wrong, at the arrows of state machines. Under ADAM_INVARIANTS
// in the environment, which tests/run sets, the first one that is broken traps, at its line for a
// debugger or a core. Elsewhere the program goes on.
#ifndef ADAM_CORE_INVARIANT_H
#define ADAM_CORE_INVARIANT_H

#include <stdlib.h>

#define INVARIANT(condition)                                                                       \
    do {                                                                                           \
        if (!(condition) && getenv("ADAM_INVARIANTS"))                                             \
            __builtin_trap();                                                                      \
    } while (0)

#endif
