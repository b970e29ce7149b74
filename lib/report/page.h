// A run as one static HTML page: figures, curves, model, confusion, pictures,
// and how it was made. No script, nothing loaded from elsewhere.
#ifndef ADAM_REPORT_PAGE_H
#define ADAM_REPORT_PAGE_H

#include "report/history.h"
#include "report/review.h"

struct error;

struct page {
    const char *title;
    const struct history *history;
    const struct checkpoint *checkpoint; // NULL: there is none
    const char *no_checkpoint;           // then: why
    const struct review *review;         // NULL: there is none
    const char *no_review;               // then: why
    const char *data;                    // that was reviewed
};

// STATUS_IO when `out` does not take it.
int page_write(FILE *out, const struct page *page, struct error *err);

#endif
