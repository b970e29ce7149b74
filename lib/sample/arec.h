// The record format, as adam-records(5) describes it byte by byte: a file is
// one or more segments; a segment is a header, then chunks. Everything here
// works on bytes in memory; who reads and writes them is elsewhere.
#ifndef ADAM_SAMPLE_AREC_H
#define ADAM_SAMPLE_AREC_H

#include <stdbool.h>

#include "sample/sample.h"

struct error;

enum {
    AREC_VERSION = 1,
    AREC_HEADER = 16,     // bytes of a segment's header
    AREC_CHUNK = 24,      // bytes of a chunk's header
    AREC_SAMPLE = 16,     // bytes of a sample before its key
    AREC_ENTRY = 16,      // bytes of an entry of the index
    AREC_TAIL = 32,       // bytes of the tail's body
    AREC_ENTRIES = 4096,  // entries of one index chunk at most
    AREC_KEY_MAX = 65535, // bytes
};

// The first 8 bytes of a segment: "adamrec" and a newline.
bool arec_is_segment(const uint8_t *data, size_t size);

// A chunk's type, as its four letters read as a little-endian number.
enum arec_type {
    AREC_CLASSES = 0x73616c63,  // "clas"
    AREC_ORIGINAL = 0x6769726f, // "orig"
    AREC_RECORD = 0x706d6173,   // "samp"
    AREC_INDEX = 0x78646e69,    // "indx"
    AREC_END = 0x6c696174,      // "tail"
};

void arec_header_encode(uint8_t bytes[AREC_HEADER]);
enum arec_header { AREC_NO_HEADER, AREC_GOOD_HEADER, AREC_OTHER_VERSION };
enum arec_header arec_header_check(const uint8_t *bytes, size_t size);

struct arec_chunk {
    uint32_t type;
    uint32_t number; // of the sample in its segment, of the first entry of the index; else 0
    uint64_t length; // of the body, without the zeros that fill it up to 8 bytes
    uint32_t crc;    // CRC-32 of the body
};

void arec_chunk_encode(uint8_t bytes[AREC_CHUNK], const struct arec_chunk *chunk);
// False when the header's own CRC-32 does not fit, or bytes are missing.
bool arec_chunk_decode(struct arec_chunk *chunk, const uint8_t *bytes, size_t size);
// Zeros behind a body of this length.
unsigned arec_padding(uint64_t length);

enum arec_encoding { AREC_U8, AREC_F32, AREC_JPEG, AREC_PNG, AREC_PNM };

// The body of a sample, in place.
struct arec_record {
    int32_t label; // of its segment
    enum arec_encoding encoding;
    int channels, height, width; // 0 when encoded
    const char *key;             // ends in a zero byte
    size_t key_length;
    const uint8_t *data;
    size_t size;
};

// Encodes what comes before the data: AREC_SAMPLE bytes and the key with its
// zeros. `bytes` has room for arec_record_head(key_length).
size_t arec_record_head(size_t key_length);
void arec_record_encode(uint8_t *bytes, const struct arec_record *record);
// STATUS_DATA when the parts do not fit together.
int arec_record_decode(struct arec_record *record, const uint8_t *body, uint64_t length,
                       struct error *err);
// The pixels of a record that is not encoded.
int arec_record_image(struct image *image, const struct arec_record *record, struct error *err);
bool arec_is_encoded(enum arec_encoding encoding);

// The class names of one segment and what they are to the reader.
struct arec_labels {
    int32_t *map; // label of the segment to the reader's label; LABEL_NONE: name unknown
    int count;
};

// Body of a "clas" chunk: names from label `first` on. Adds them to `classes`
// and to the map.
int arec_classes_decode(struct arec_labels *labels, const uint8_t *body, uint64_t length,
                        struct classes *classes, struct error *err);
// The reader's label, or STATUS_DATA when the segment has no such name.
int arec_label(const struct arec_labels *labels, int32_t label, int32_t *mapped, struct error *err);
void arec_labels_free(struct arec_labels *labels);

struct arec_entry {
    uint64_t offset; // of the sample's chunk, from the segment's start
    int32_t label;
    uint32_t key_crc;
};
void arec_entry_encode(uint8_t bytes[AREC_ENTRY], const struct arec_entry *entry);
void arec_entry_decode(struct arec_entry *entry, const uint8_t bytes[AREC_ENTRY]);

// Offsets count from the segment's start.
struct arec_tail {
    uint64_t classes; // of the chunk with all names
    uint64_t index;   // of the first chunk of the index
    uint64_t samples;
    uint64_t length; // of the segment, tail included
};
void arec_tail_encode(uint8_t bytes[AREC_TAIL], const struct arec_tail *tail);
bool arec_tail_decode(struct arec_tail *tail, const uint8_t *body, uint64_t length);

#endif
