// The parts of the page that look at predictions. Inside lib/report only.
#ifndef ADAM_REPORT_PAGE_REVIEW_H
#define ADAM_REPORT_PAGE_REVIEW_H

#include "report/page.h"

struct error;

// The confusion matrix as a coloured table, or, of many classes, as a picture; and the pairs
// that are confused most.
int page_confusion(FILE *out, const struct page *page, struct error *err);
void page_pictures(FILE *out, const struct page *page);

#endif
