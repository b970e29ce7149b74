// Tar members: names, keys, labels, sizes, in all dialects.
#include "source_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[INPUT_PATH];
    input_file(path, data, size);
    input_read(path, "tar");
    return 0;
}
