// IDX headers and samples.
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    input_file(path, data, size);
    input_read(path, "idx");
    return 0;
}
