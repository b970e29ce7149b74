// What this processor can do, found once. ADAM_CPU=ref|avx2|avx512 in the
// environment forces a level at or below it, so that tests reach every path.
#ifndef ADAM_CORE_CPU_H
#define ADAM_CORE_CPU_H

#include <stdint.h>

enum cpu_level {
    CPU_REF,    // plain C, any machine
    CPU_AVX2,   // AVX2 and FMA
    CPU_AVX512, // AVX-512 F, BW, DQ and VL
};

enum cpu_level cpu_level(void);
const char *cpu_level_name(enum cpu_level level);

// Processors this process may run on (its affinity mask and its cgroup's quota).
int cpu_count(void);
// Bytes of memory that this process may use (the machine's, or its cgroup's limit).
uint64_t cpu_memory(void);

#endif
