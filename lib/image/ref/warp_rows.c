// The inner loops of a warp in plain C, for any number of channels.
#include "image/warp_rows.h"

void warp_row_u8(uint8_t *to, const struct warp_source *from, int n, struct warp_step at) {
    const uint8_t *data = from->data;
    int channels = from->channels;
    for (int i = 0; i < n; i++, at.x += at.dx, at.y += at.dy, to += channels) {
        const uint8_t *p =
            data + (at.y >> WARP_POINT) * from->stride + (at.x >> WARP_POINT) * channels;
        const uint8_t *q = p + from->stride;
        int fx = warp_fx(at.x), fy = warp_fy(at.y);
        for (int c = 0; c < channels; c++)
            to[c] = (uint8_t)warp_blend(p[c], p[c + channels], q[c], q[c + channels], fx, fy);
    }
}

void warp_row_f32(float *to, const struct warp_source *from, int n, struct warp_step at) {
    const float *data = from->data;
    int channels = from->channels;
    for (int i = 0; i < n; i++, at.x += at.dx, at.y += at.dy, to += channels) {
        const float *p =
            data + (at.y >> WARP_POINT) * from->stride + (at.x >> WARP_POINT) * channels;
        const float *q = p + from->stride;
        float fx = (float)(uint32_t)at.x * 0x1p-32f, fy = (float)(uint32_t)at.y * 0x1p-32f;
        for (int c = 0; c < channels; c++) {
            float left = p[c] + (q[c] - p[c]) * fy;
            float right = p[c + channels] + (q[c + channels] - p[c + channels]) * fy;
            to[c] = left + (right - left) * fx;
        }
    }
}
