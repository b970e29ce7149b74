#include "image/exif.h"

#include <string.h>

#include "core/error.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3
#define ENTRY_BYTES 12

// A TIFF block in either byte order.
struct tiff {
    const uint8_t *data;
    size_t size;
    bool big;
};

static uint32_t tiff_number(const struct tiff *tiff, size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | tiff->data[at + (tiff->big ? i : bytes - 1 - i)];
    return value;
}

int exif_orientation(const uint8_t *data, size_t size) {
    struct tiff tiff = {.data = data, .size = size};
    if (size < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0))
        return 1;
    tiff.big = data[0] == 'M';
    size_t at = tiff_number(&tiff, 4, 4);
    if (at > size - 2)
        return 1;
    size_t entries = tiff_number(&tiff, at, 2);
    for (at += 2; entries > 0 && size - at >= ENTRY_BYTES; entries--, at += ENTRY_BYTES) {
        if (tiff_number(&tiff, at, 2) != TAG_ORIENTATION)
            continue;
        uint32_t orientation = tiff_number(&tiff, at + 8, 2);
        bool valid =
            tiff_number(&tiff, at + 2, 2) == TYPE_SHORT && orientation >= 1 && orientation <= 8;
        return valid ? (int)orientation : 1;
    }
    return 1;
}

// Walks the marker segments up to the first scan (ITU-T T.81, B.1.1).
int exif_orientation_jpeg(const uint8_t *data, size_t size) {
    enum { SOI = 0xd8, EOI = 0xd9, SOS = 0xda, APP1 = 0xe1 };
    static const char name[6] = "Exif\0";
    size_t at = 2;
    if (size < 2 || data[0] != 0xff || data[1] != SOI)
        return 1;
    while (at < size && size - at >= 4) {
        uint8_t marker = data[at + 1];
        if (data[at] != 0xff || marker == EOI || marker == SOS)
            return 1;
        if (marker == 0xff) { // a fill byte
            at++;
            continue;
        }
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (length < 2 || length > size - at - 2)
            return 1;
        const uint8_t *body = data + at + 4;
        if (marker == APP1 && length >= 2 + sizeof name && memcmp(body, name, sizeof name) == 0)
            return exif_orientation(body + sizeof name, length - 2 - sizeof name);
        at += 2 + length;
    }
    return 1;
}

bool exif_transposes(int orientation) {
    return orientation >= 5 && orientation <= 8;
}

// Which edges of the scene the 0th row and the 0th column show, by the tag.
static const struct {
    bool from_right, from_bottom;
} start[9] = {[2] = {true, false}, [3] = {true, true}, [4] = {false, true},
              [6] = {true, false}, [7] = {true, true}, [8] = {false, true}};

// Writes the rows of `from` where they belong in `to`.
static void place_rows(struct image *to, const struct image *from, int orientation) {
    const int channels = from->channels;
    const ptrdiff_t line = (ptrdiff_t)to->width * channels;
    ptrdiff_t across = start[orientation].from_right ? -channels : channels;
    ptrdiff_t down = start[orientation].from_bottom ? -line : line;
    uint8_t *first =
        to->u8 + (across < 0 ? line - channels : 0) + (down < 0 ? line * (to->height - 1) : 0);
    ptrdiff_t step = exif_transposes(orientation) ? down : across;
    ptrdiff_t row = exif_transposes(orientation) ? across : down;
    const uint8_t *pixel = from->u8;
    for (int y = 0; y < from->height; y++) {
        uint8_t *at = first + y * row;
        // One by one: a loop or memcpy over so few bytes costs three times as much.
        for (int x = 0; x < from->width; x++, at += step, pixel += channels) {
            at[0] = pixel[0];
            if (channels == 3)
                at[1] = pixel[1], at[2] = pixel[2];
        }
    }
}

// Where the picture lies among pixels that are larger.
static struct image_true place_true(const struct image *to, const struct image *from,
                                    int orientation) {
    struct image_true whole = from->true_size;
    bool transposes = exif_transposes(orientation);
    int width = transposes ? whole.height : whole.width;
    int height = transposes ? whole.width : whole.height;
    int left = transposes ? whole.top : whole.left, top = transposes ? whole.left : whole.top;
    if (start[orientation].from_right)
        left = to->width * whole.by - width - left;
    if (start[orientation].from_bottom)
        top = to->height * whole.by - height - top;
    if (!whole.by)
        return whole;
    return (struct image_true){whole.by, left, top, width, height};
}

int exif_apply(struct image *image, int orientation, struct error *err) {
    if (orientation < 2 || orientation > 8)
        return STATUS_OK;
    struct image upright = {0};
    bool transposes = exif_transposes(orientation);
    int status =
        image_shape(&upright, transposes ? image->height : image->width,
                    transposes ? image->width : image->height, image->channels, PIXEL_U8, err);
    if (status)
        return status;
    place_rows(&upright, image, orientation);
    upright.true_size = place_true(&upright, image, orientation);
    image_swap(image, &upright);
    image_free(&upright);
    return STATUS_OK;
}
