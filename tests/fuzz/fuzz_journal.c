// Journals of a data server: a set of places within its part of the data, or a message.
#include "core/error.h"
#include "deal/journal.h"
#include "source_input.h"

static void check_place(const struct journal_of *of, const struct journal_place *place) {
    uint64_t end = 0;
    for (size_t i = 0; i < place->finished.count; i++) {
        struct range range = place->finished.at[i];
        if (range.count == 0 || (i > 0 && range.first <= end))
            abort();
        end = (uint64_t)range.first + range.count;
    }
    if (end > of->count)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct journal_of of = {
        .run = "00112233445566778899aabbccddeeff", .digest = 7, .samples = 100, .count = 60};
    char path[INPUT_PATH];
    struct journal *journal = NULL;
    struct journal_place place;
    struct error err = {0};
    bool found;
    input_file(path, data, size);
    int status = journal_open(&journal, path, &of, &place, &found, &err);
    if (status && !*err.text)
        abort();
    if (!status) {
        check_place(&of, &place);
        ranges_free(&place.finished);
        journal_close(journal);
    }
    return 0;
}
