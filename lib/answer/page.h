// The page of a prediction service: answer/page.html, as it is.
#ifndef ADAM_ANSWER_PAGE_H
#define ADAM_ANSWER_PAGE_H

#include <stddef.h>

// The text, and its length.
const char *page_text(size_t *length);

#endif
