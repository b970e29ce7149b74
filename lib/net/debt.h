// What one side of a link owes the other: requests that came and whose answers were not taken
// yet. Who asks faster than it reads answers would otherwise fill the memory of who answers.
// Belongs to the link, under its lock.
#ifndef ADAM_NET_DEBT_H
#define ADAM_NET_DEBT_H

#include <stddef.h>
#include <stdint.h>

// Requests of one side in flight (net/link.h). An answer may have been read before it is
// known to be sent, so that twice as many may seem to be.
#define DEBT_WINDOW 256
#define DEBT_MOST (2 * DEBT_WINDOW + 2)
// Bytes of them, and of the heads of answers: payloads are others' memory.
#define DEBT_BYTES (4 << 20)

struct debt { // {0} is none
    struct debt_entry {
        uint64_t request;
        size_t bytes;
    } entries[DEBT_MOST];
    uint32_t count;
    size_t bytes; // of all
};

enum debt_verdict {
    DEBT_FINE,
    DEBT_BUSY,  // it is noted, and should be refused: later
    DEBT_BEYOND // it is not noted: nobody sound asks so much at a time
};

// A request of so many bytes came.
enum debt_verdict debt_add(struct debt *debt, uint64_t request, size_t bytes);
// It has an answer of so many bytes, which was not taken yet.
void debt_answer(struct debt *debt, uint64_t request, size_t bytes);
// The answer was taken.
void debt_pay(struct debt *debt, uint64_t request);

#endif
