// safetensors files: what is believed can be read to its last byte.
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "store/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct safetensors file;
    struct error err = {0};
    volatile uint8_t sum = 0;
    if (safetensors_parse(&file, data, size, &err))
        return 0;
    for (size_t i = 0; i < file.count; i++)
        for (uint64_t j = 0; j < file.tensors[i].bytes; j++)
            sum = (uint8_t)(sum + ((const uint8_t *)file.tensors[i].data)[j]);
    safetensors_free(&file);
    return 0;
}
