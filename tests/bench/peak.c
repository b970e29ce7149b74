// peak: the multiply-adds that one core can do at best, in the widest vectors that
// the kernels use here, in turns (turns.h), as floating-point operations a second:
// two for each multiply-add.
#include "kernels/kernels.h"
#include "turns.h"

static struct rate peak(void *self, double seconds) {
    const struct kernels *kernels = self;
    double begin = clock_seconds(), busy = clock_busy(), done = 0;
    while (done == 0 || clock_seconds() - begin < seconds) {
        float sum;
        done += 2 * (double)kernels->multiply_adds(&sum, 10000);
    }
    return (struct rate){done / (clock_seconds() - begin), done / (clock_busy() - busy)};
}

int main(void) {
    struct kernels kernels = *kernels_best();
    take_turns(peak, &kernels, kernels.name);
    return 0;
}
