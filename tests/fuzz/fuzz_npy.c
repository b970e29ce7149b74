// .npy headers, versions 1 to 3, and samples.
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    input_file(path, data, size);
    input_read(path, "npy");
    return 0;
}
