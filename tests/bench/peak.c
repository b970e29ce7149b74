// peak: the multiply-adds that one core can do at best, in turns (turns.h), as
// floating-point operations a second: two for each multiply-add, in the widest
// vectors that the kernels use here, with enough independent sums to hide how long
// one takes. The rate is 0 where it knows no such instruction.
#include "core/cpu.h"
#include "turns.h"

enum { SUMS = 12, REPEATS = 1000 };

#if defined(__x86_64__)
#include <immintrin.h>

#define FOR_EACH_SUM(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define BEGIN_512(I) __m512 sum##I = _mm512_set1_ps(I);
#define BEGIN_256(I) __m256 sum##I = _mm256_set1_ps(I);
// Nothing is folded or moved out of the loop.
#define ADD_512(I)                                                                                 \
    sum##I = _mm512_fmadd_ps(sum##I, a, b);                                                        \
    __asm__ volatile("" : "+v"(sum##I));
#define ADD_256(I)                                                                                 \
    sum##I = _mm256_fmadd_ps(sum##I, a, b);                                                        \
    __asm__ volatile("" : "+x"(sum##I));

__attribute__((target("avx512f"))) static void fma_avx512(void *self) {
    (void)self;
    __m512 a = _mm512_set1_ps(1.000001f), b = _mm512_set1_ps(1e-6f);
    FOR_EACH_SUM(BEGIN_512)
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        FOR_EACH_SUM(ADD_512)
    }
}

__attribute__((target("avx2,fma"))) static void fma_avx2(void *self) {
    (void)self;
    __m256 a = _mm256_set1_ps(1.000001f), b = _mm256_set1_ps(1e-6f);
    FOR_EACH_SUM(BEGIN_256)
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        FOR_EACH_SUM(ADD_256)
    }
}
#endif

static struct rate peak(void *self, double seconds) {
    enum cpu_level level = *(enum cpu_level *)self;
#if defined(__x86_64__)
    if (level == CPU_AVX512)
        return rate_of(fma_avx512, NULL, 2.0 * 16 * SUMS * REPEATS, 1, seconds);
    if (level == CPU_AVX2)
        return rate_of(fma_avx2, NULL, 2.0 * 8 * SUMS * REPEATS, 1, seconds);
#endif
    (void)level, (void)seconds;
    return (struct rate){0};
}

int main(void) {
    enum cpu_level level = cpu_level();
    take_turns(peak, &level, cpu_level_name(level));
    return 0;
}
