// The inner loops of a warp in plain C, for any number of channels.
#include "image/warp_rows.h"

void warp_row_u8(uint8_t *to, const struct warp_source *from, int n, struct warp_step at) {
    for (int i = 0; i < n; i++, to += from->channels)
        warp_pixel_u8(to, from, warp_cut_at(at.x, at.dx, i), warp_cut_at(at.y, at.dy, i));
}

void warp_row_f32(float *to, const struct warp_source *from, int n, struct warp_step at) {
    for (int i = 0; i < n; i++, at.x += at.dx, at.y += at.dy, to += from->channels)
        warp_pixel_f32(to, from, at.x, at.y);
}
