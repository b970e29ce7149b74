#include "store/crc.h"

#include <zlib.h>

uint32_t crc32_of(uint32_t crc, const void *data, size_t size) {
    // zlib takes a null pointer as the wish to begin anew.
    return size > 0 ? (uint32_t)crc32_z(crc, data, size) : crc;
}
