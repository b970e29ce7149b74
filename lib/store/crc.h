// CRC-32 as in gzip and PNG (ISO 3309).
#ifndef ADAM_STORE_CRC_H
#define ADAM_STORE_CRC_H

#include <stddef.h>
#include <stdint.h>

// Goes on from `crc`; 0 to begin.
uint32_t crc32_of(uint32_t crc, const void *data, size_t size);

#endif
