#include "core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cgroup.h"

static const char *const level_names[] = {"ref",      "neon",   "avx2",
                                          "avx2vnni", "avx512", "avx512vnni"};

#if defined(__x86_64__)
// AVX-VNNI, which not all compilers' __builtin_cpu_supports knows: leaf 7.1, EAX.
static bool ask_avx_vnni(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4) != 0;
}

// Asked once: in a virtual machine each such question stops the processor until the host answers.
// Threads that ask at the same time race for the same answer.
static bool has_avx_vnni(void) {
    static atomic_int known; // 0: not asked yet; 1: no; 2: yes
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (!answer) {
        answer = ask_avx_vnni() ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}
#endif

bool cpu_has(enum cpu_level level) {
    switch (level) {
#if defined(__x86_64__)
    case CPU_AVX512_VNNI:
        return cpu_has(CPU_AVX512) && __builtin_cpu_supports("avx512vnni");
    case CPU_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case CPU_AVX2_VNNI:
        return cpu_has(CPU_AVX2) && has_avx_vnni();
    case CPU_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
    case CPU_NEON:
        return true;
#endif
    default:
        return level == CPU_REF;
    }
}

// The level that ADAM_CPU names; without it, or with another name, the highest.
static enum cpu_level wanted_level(void) {
    const char *wanted = getenv("ADAM_CPU");
    for (enum cpu_level l = CPU_REF; wanted && l < CPU_AVX512_VNNI; l++)
        if (!strcmp(wanted, level_names[l]))
            return l;
    return CPU_AVX512_VNNI;
}

bool cpu_is_plain(void) {
    return wanted_level() == CPU_REF;
}

enum cpu_level cpu_level(void) {
    enum cpu_level level = wanted_level();
    while (!cpu_has(level))
        level--;
    return level;
}

const char *cpu_level_name(enum cpu_level level) {
    return level_names[level];
}

#if defined(__x86_64__)
enum { ZERO_OPERANDS = 1 << 6, ZERO_RESULTS = 1 << 15, NO_TRAPS = 0x1f80 }; // of MXCSR
#elif defined(__aarch64__)
enum { ZEROS = 1 << 24 }; // of FPCR: FZ
#endif

void cpu_flush_subnormals(void) {
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | ZERO_OPERANDS | ZERO_RESULTS);
#elif defined(__aarch64__)
    __builtin_aarch64_set_fpcr(__builtin_aarch64_get_fpcr() | ZEROS);
#endif
}

unsigned cpu_enter_arithmetic(void) {
    unsigned before = 0;
#if defined(__x86_64__)
    before = _mm_getcsr();
    _mm_setcsr(NO_TRAPS | ZERO_OPERANDS | ZERO_RESULTS);
#elif defined(__aarch64__)
    before = __builtin_aarch64_get_fpcr();
    __builtin_aarch64_set_fpcr(ZEROS);
#endif
    return before;
}

void cpu_leave_arithmetic(unsigned before) {
#if defined(__x86_64__)
    _mm_setcsr(before);
#elif defined(__aarch64__)
    __builtin_aarch64_set_fpcr(before);
#else
    (void)before;
#endif
}

int cpu_count(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int limit = cgroup_limits("").processors;
    return limit < n ? limit : n;
}

uint64_t cpu_memory(void) {
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t limit = cgroup_limits("").memory;
    return limit < memory ? limit : memory;
}
