// What this processor can do. ADAM_CPU in the environment, a level's name, forces the best
// level up to that one, so that tests reach every path.
#ifndef ADAM_CORE_CPU_H
#define ADAM_CORE_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum cpu_level {
    CPU_REF,         // "ref": plain C, any machine
    CPU_NEON,        // "neon": NEON of 64-bit ARM, which has none of the others
    CPU_AVX2,        // "avx2": AVX2 and FMA
    CPU_AVX2_VNNI,   // "avx2vnni": and products of bytes, AVX-VNNI
    CPU_AVX512,      // "avx512": AVX-512 F, BW, DQ and VL
    CPU_AVX512_VNNI, // "avx512vnni": and products of bytes, VNNI
};

// Whether the processor has all that a level needs: not every one has what is below its best.
bool cpu_has(enum cpu_level level);

enum cpu_level cpu_level(void);
// Whether ADAM_CPU forces plain C.
bool cpu_is_plain(void);
const char *cpu_level_name(enum cpu_level level);

// From here on this thread, and those that it starts, take numbers nearer to 0 than FLT_MIN (of
// doubles: DBL_MIN) for 0, as operands and as results. What dies away, such as the velocity of a
// weight that no gradient reaches any more, would otherwise stay subnormal, and products with it
// many times as slow. Where the processor cannot, nothing changes.
void cpu_flush_subnormals(void);
// The same for a while, in a thread of a program that is not ours: whatever that has chosen, it
// also rounds to the nearest number and traps nothing. Gives what cpu_leave_arithmetic is to
// restore.
unsigned cpu_enter_arithmetic(void);
void cpu_leave_arithmetic(unsigned before);

// Processors this process may run on (its affinity mask and its control groups' quota), at least 1.
int cpu_count(void);
// Bytes of memory that this process may use (the machine's, or the limit of its control groups).
uint64_t cpu_memory(void);

#endif
