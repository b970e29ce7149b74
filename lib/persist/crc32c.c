#include "persist/crc32c.h"

#include <string.h>

#include "core/cpu.h"

// Half a byte at a time: the remainders of 0..15 by the reflected polynomial 0x82f63b78.
static uint32_t crc_plain(uint32_t crc, const uint8_t *bytes, size_t size) {
    static const uint32_t remainders[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ remainders[crc & 15];
        crc = crc >> 4 ^ remainders[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
// The target is of this function alone: it is called where the processor has the instruction.
__attribute__((target("sse4.2"))) static uint32_t
crc_instruction(uint32_t crc, const uint8_t *bytes, size_t size) {
    uint64_t wide = crc, word;
    for (; size >= sizeof word; size -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size > 0; size--)
        crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return crc;
}

static int has_instruction(void) {
    return __builtin_cpu_supports("sse4.2") && !cpu_is_plain();
}
#endif

uint32_t crc32c_of(uint32_t crc, const void *data, size_t size) {
#if defined(__x86_64__)
    if (has_instruction())
        return ~crc_instruction(~crc, data, size);
#endif
    return ~crc_plain(~crc, data, size);
}
