#include "report/page_review.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "report/heat.h"
#include "report/markup.h"

enum {
    MATRIX_MOST = 30, // classes that a person can read as a matrix
    PAIRS_MOST = 20,
    PHOTO = 64,     // pixels of a side from which a picture is shown larger
    NAME_SHORT = 8, // letters of a name that fits over a column
};

static const char *name_of(const struct review *review, int class) {
    return review->names.names[class];
}

static void put_missing_review(FILE *out, const struct page *page) {
    fputs("<p class=\"quiet\">Not shown: ", out);
    markup_text(out, page->no_review);
    fputs("</p>\n", out);
}

// --- confusion ---------------------------------------------------------------

static void put_matrix_cell(FILE *out, const struct review *review, int row, int column) {
    const struct tally *tally = &review->tally;
    uint64_t count = tally->confusion[(size_t)row * (size_t)tally->classes + (size_t)column];
    if (count == 0) {
        fputs("<td class=\"cell\"></td>", out);
        return;
    }
    unsigned char colour[3];
    heat_colour(colour, (double)count / (double)tally->truth[row], row == column);
    fputs("<td class=\"cell\" style=\"background:rgb(", out);
    for (int i = 0; i < 3; i++)
        fprintf(out, "%s%d", i ? "," : "", colour[i]);
    fputs(")\" title=\"", out);
    markup_text(out, name_of(review, row));
    fputs(" as ", out);
    markup_text(out, name_of(review, column));
    fprintf(out, "\">%llu</td>", (unsigned long long)count);
}

static void share_cell(FILE *out, uint64_t part, uint64_t whole) {
    if (whole)
        fprintf(out, "<td>%.1f%%</td>", 100.0 * (double)part / (double)whole);
    else
        fputs("<td></td>", out);
}

static bool short_names(const struct review *review) {
    for (int c = 0; c < review->names.count; c++)
        if (strlen(name_of(review, c)) > NAME_SHORT)
            return false;
    return true;
}

static void matrix_head(FILE *out, const struct review *review) {
    bool fits = short_names(review);
    fputs("<thead><tr><th class=\"word\">true / predicted</th>", out);
    for (int c = 0; c < review->tally.classes; c++) {
        fputs("<th class=\"cell\" title=\"", out);
        markup_text(out, name_of(review, c));
        fputs("\">", out);
        if (fits)
            markup_text(out, name_of(review, c));
        else
            fprintf(out, "%d", c + 1);
        fputs("</th>", out);
    }
    fputs("<th>samples</th><th>recall</th><th>precision</th></tr></thead>\n", out);
}

static void put_matrix(FILE *out, const struct review *review) {
    const struct tally *tally = &review->tally;
    bool fits = short_names(review);
    fputs("<div class=\"wide\"><table class=\"confusion\">", out);
    matrix_head(out, review);
    fputs("<tbody>\n", out);
    for (int row = 0; row < tally->classes; row++) {
        fputs("<tr><th class=\"word\">", out);
        if (!fits)
            fprintf(out, "%d ", row + 1);
        markup_text(out, name_of(review, row));
        fputs("</th>", out);
        for (int c = 0; c < tally->classes; c++)
            put_matrix_cell(out, review, row, c);
        fprintf(out, "<td>%llu</td>", (unsigned long long)tally->truth[row]);
        share_cell(out, tally->correct[row], tally->truth[row]);
        share_cell(out, tally->correct[row], tally->predicted[row]);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

struct pair_count {
    int truth, predicted;
    uint64_t count;
};

// The off-diagonal cells with the highest counts, in order.
static int confused_most(const struct tally *tally, struct pair_count *pairs) {
    int n = 0;
    size_t classes = (size_t)tally->classes;
    for (size_t i = 0; i < classes * classes; i++) {
        struct pair_count p = {(int)(i / classes), (int)(i % classes), tally->confusion[i]};
        if (p.truth == p.predicted || p.count == 0 ||
            (n == PAIRS_MOST && p.count <= pairs[n - 1].count))
            continue;
        int place = n < PAIRS_MOST ? n++ : n - 1;
        for (; place > 0 && pairs[place - 1].count < p.count; place--)
            pairs[place] = pairs[place - 1];
        pairs[place] = p;
    }
    return n;
}

static void pairs_table(FILE *out, const struct review *review) {
    struct pair_count pairs[PAIRS_MOST];
    int n = confused_most(&review->tally, pairs);
    if (n == 0) {
        fputs("<p>No sample was mistaken for another class.</p>\n", out);
        return;
    }
    fputs("<h3>Mistaken most often</h3>\n<div class=\"wide\"><table><thead><tr><th "
          "class=\"word\">true</th>"
          "<th class=\"word\">predicted</th><th>times</th><th>of the class</th></tr></thead>"
          "<tbody>\n",
          out);
    for (int i = 0; i < n; i++) {
        fputs("<tr><td class=\"word\">", out);
        markup_words(out, name_of(review, pairs[i].truth));
        fputs("</td><td class=\"word\">", out);
        markup_words(out, name_of(review, pairs[i].predicted));
        fprintf(out, "</td><td>%llu</td>", (unsigned long long)pairs[i].count);
        share_cell(out, pairs[i].count, review->tally.truth[pairs[i].truth]);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}

// Of more classes than a table can show.
static int heat_picture(FILE *out, const struct tally *tally, struct error *err) {
    void *png;
    size_t size;
    int status = heat_map(&png, &size, tally, err);
    if (status != STATUS_OK)
        return status;
    fprintf(
        out,
        "<p class=\"quiet\">A row for each of the %d true classes, a column for each predicted "
        "one: blue is right, orange is wrong.</p>\n<img class=\"heat\" alt=\"confusion matrix\" "
        "src=\"data:image/png;base64,",
        tally->classes);
    markup_base64(out, png, size);
    fputs("\">\n", out);
    free(png);
    return STATUS_OK;
}

int page_confusion(FILE *out, const struct page *page, struct error *err) {
    const struct review *review = page->review;
    fputs("<h2>Confusion</h2>\n", out);
    if (!review) {
        put_missing_review(out, page);
        return STATUS_OK;
    }
    char samples[MARKUP_NUMBER];
    markup_count(samples, (double)review->tally.samples);
    fprintf(out, "<p>%s samples of <code>", samples);
    markup_text(out, page->data);
    fprintf(out, "</code>, the checkpoint of epoch %.4g.", page->checkpoint->epoch);
    if (review->skipped)
        fprintf(out, " %llu that could not be used %s left out.",
                (unsigned long long)review->skipped, review->skipped == 1 ? "was" : "were");
    fputs("</p>\n", out);
    if (!review->tally.confusion) {
        fputs("<p class=\"quiet\">Not shown: too many classes.</p>\n", out);
        return STATUS_OK;
    }
    int status = STATUS_OK;
    if (review->tally.classes <= MATRIX_MOST)
        put_matrix(out, review);
    else
        status = heat_picture(out, &review->tally, err);
    pairs_table(out, review);
    return status;
}

// --- pictures ----------------------------------------------------------------

static void shot_picture(FILE *out, const struct shot *shot) {
    if (!shot->png) {
        fputs("<div class=\"none\">not 8-bit gray or RGB</div>", out);
        return;
    }
    fputs("<img alt=\"\" src=\"data:image/png;base64,", out);
    markup_base64(out, shot->png, shot->png_size);
    fputs("\">", out);
}

// A photograph is larger than a digit, and its caption has a line for each part.
static void shot_figure(FILE *out, const struct review *review, const struct shot *shot) {
    bool right = shot->label == shot->predicted;
    bool photo = shot->width > PHOTO || shot->height > PHOTO;
    fprintf(out, "<figure%s title=\"", photo ? " class=\"photo\"" : "");
    markup_text(out, shot->key);
    fputs("\">", out);
    shot_picture(out, shot);
    fputs("<figcaption><b>", out);
    markup_words(out, name_of(review, shot->label));
    fputs("</b> ", out);
    if (!right) {
        fputs("<span class=\"miss\">as ", out);
        markup_words(out, name_of(review, shot->predicted));
        fputs("</span> ", out);
    }
    fprintf(out, "<span class=\"%s\">%.3f</span></figcaption></figure>\n", right ? "quiet" : "miss",
            (double)shot->score);
}

static void gallery_section(FILE *out, const struct review *review, const struct gallery *gallery,
                            const char *title) {
    if (gallery->count == 0)
        return;
    fprintf(out, "<h3>%s</h3>\n<div class=\"shots\">\n", title);
    for (int i = 0; i < gallery->count; i++)
        shot_figure(out, review, &gallery->shots[i]);
    fputs("</div>\n", out);
}

void page_pictures(FILE *out, const struct page *page) {
    const struct review *review = page->review;
    fputs("<h2>Pictures and predictions</h2>\n", out);
    if (!review) {
        put_missing_review(out, page);
        return;
    }
    fputs("<p>Under each picture: its class, what the model says where that is another one, and "
          "how sure it is.</p>\n",
          out);
    gallery_section(out, review, &review->wrong, "Wrong, the most certain first");
    gallery_section(out, review, &review->doubtful, "Right, but in doubt");
    gallery_section(out, review, &review->typical, "One of each class");
}
