// CIFAR-10 and CIFAR-100 records.
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    input_file(path, data, size);
    input_read(path, "cifar10");
    input_read(path, "cifar100");
    input_read(path, "cifar100-coarse");
    return 0;
}
