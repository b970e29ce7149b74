// CRC-32C (Castagnoli; RFC 3720, appendix B.4), which processors compute by an instruction. The
// CRC-32 of gzip (store/crc.h) is another polynomial.
#ifndef ADAM_PERSIST_CRC32C_H
#define ADAM_PERSIST_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// Goes on from `crc`; 0 to begin. ADAM_CPU=ref in the environment (core/cpu.h) keeps it from
// using the instruction.
uint32_t crc32c_of(uint32_t crc, const void *data, size_t size);

#endif
