#include "prep/parts.h"

#include "core/error.h"

// What would fill an empty part. With strata each class gives a rounded number of what it has.
// Without them the names decide, and a draw with the same name takes the same samples again.
static const char *remedy(int part, bool stratify) {
    if (stratify && part == 0)
        return "--stratify rounds the shares of each class, and the other parts took all; smaller "
               "shares of those would do";
    if (stratify)
        return "--stratify rounds its share of each class, to none; a larger share would do";
    if (part == 0)
        return "all samples fell into the others; smaller shares of those would do, and other "
               "names if they came out of a split into parts of these names";
    return "none of the samples fell into it; a larger share would do, and another name if they "
           "came out of a split into parts of this name";
}

int parts_check(const struct split *split, const uint64_t *counts, bool stratify,
                struct error *err) {
    uint64_t all = 0;
    for (int part = 0; part < split->count; part++)
        all += counts[part];
    if (!all)
        return error_set(err, STATUS_DATA, "none of the samples can be used");
    for (int part = 0; part < split->count; part++)
        if (!counts[part])
            return error_set(err, STATUS_DATA, "--split: part '%s' is empty: %s",
                             split->parts[part].name, remedy(part, stratify));
    return STATUS_OK;
}
