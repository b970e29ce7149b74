#include "member/patience.h"

#include "core/clock.h"

static const double first_told = 10;

bool patience_lost(struct patience *patience) {
    double now = clock_seconds();
    if (patience->since == 0)
        patience->since = now;
    double waited = now - patience->since;
    if (waited < (patience->told > 0 ? 2 * patience->told : first_told))
        return false;
    patience->told = waited;
    return true;
}

bool patience_found(struct patience *patience) {
    bool told = patience->told > 0;
    *patience = (struct patience){0};
    return told;
}
