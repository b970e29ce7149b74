#include "kernels/winograd_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/conv_sizes.h"

enum {
    MAPS_MOST = 1 << 14,          // so that no size overflows
    L2_FLOATS = 1 << 18,          // 1 MiB, the L2 cache of a core
    CHUNK_FLOATS = L2_FLOATS / 2, // data, products and kernels; the picture's lines pass beside
    FAR_FLOATS = 1 << 20,         // larger kernels do not stay in the L3 cache beside others
    CHUNK_LEAST = 2,              // fewer tiles do not pay for reading the kernels again
    CHUNK_FAR = 6,                // the same, of kernels from beyond the L2 cache
    CHUNK_FAR_SUMS = 9,           // the same, of sums that are read and written there
    CHUNK_MOST = 24,              // bounds the scratch of small convolutions
    SHARE_FAR = WINOGRAD_COLUMNS, // vectors of maps: fewer fill no tile, more leave the L3 cache
    LINE_FLOATS = 16,             // keeps slices from beginning in the same set of a cache
    SINGLE_FLOATS = 1 << 17,      // data of a chunk of single samples
    SINGLE_LEAST = 18,            // tiles of it: fewer do not pay for reading the kernels again
};

static int rounded_up(int n, int unit) {
    return (n + unit - 1) / unit * unit;
}

static bool possible(const struct convolution *conv) {
    const struct window *v = &conv->window;
    return !conv_depthwise(conv) && !window_dilated(v) && v->kernel_h == v->kernel_w &&
           (v->kernel_h == 3 || v->kernel_h == 5) && v->stride_h == 1 && v->stride_w == 1 &&
           v->pad_h < v->kernel_h && v->pad_w < v->kernel_w && v->c <= MAPS_MOST &&
           conv->maps <= MAPS_MOST;
}

// Tiles of so many vectors for each slice that fit into so many floats beside the kernels.
static int chunk_within(size_t floats, const struct winograd_sizes *s, int lanes, int vectors) {
    size_t tile = (size_t)(s->points * s->points * lanes) * (size_t)vectors;
    size_t chunk = s->kernels < floats ? (floats - s->kernels) / tile : 0;
    return chunk < CHUNK_MOST ? (int)chunk : CHUNK_MOST;
}

// Of a tile and slice: its data, or the products that come into their place.
static int product_vectors(const struct winograd_sizes *s) {
    return s->channels > s->maps ? s->channels : s->maps;
}

// Each chunk goes once through all kernels.
static int chunk_of_products(const struct winograd_sizes *s, int lanes) {
    int chunk = chunk_within(CHUNK_FLOATS, s, lanes, product_vectors(s));
    if (chunk >= WINOGRAD_COLUMNS)
        return chunk / WINOGRAD_COLUMNS * WINOGRAD_COLUMNS;
    return s->far ? CHUNK_FAR : CHUNK_LEAST;
}

// Each goes through the sums of their gradient, of all maps that fill vectors.
static int chunk_of_errors(const struct winograd_sizes *s, int lanes, int maps) {
    int near = chunk_within(CHUNK_FLOATS, s, lanes, s->channels + maps);
    if (near > 0)
        return near;
    return s->far ? CHUNK_FAR_SUMS : CHUNK_LEAST;
}

// Products of a slice lie where the data of the slice before were, which are multiplied by then.
static void lay_products(struct winograd_sizes *s, size_t slices, int lanes) {
    s->chunk = chunk_of_products(s, lanes);
    s->data_slice = s->value_slice =
        (size_t)(s->chunk * lanes) * (size_t)product_vectors(s) + LINE_FLOATS;
    s->values = s->kernels;
    s->data = s->values + s->value_slice;
    s->floats = s->data + slices * s->data_slice;
}

static void lay_few(struct winograd_sizes *s, size_t slices, int lanes) {
    s->few = true;
    s->chunk = WINOGRAD_COLUMNS;
    s->data_slice = (size_t)(s->chunk * lanes * s->channels) + LINE_FLOATS;
    s->values = s->data = s->kernels;
    s->floats = s->data + slices * s->data_slice;
}

static void lay_errors(struct winograd_sizes *s, size_t slices, int lanes, int maps) {
    s->chunk = chunk_of_errors(s, lanes, maps);
    s->share = s->far && maps > SHARE_FAR * lanes ? SHARE_FAR * lanes : maps;
    size_t vectors = (size_t)(s->chunk * lanes);
    s->data_slice = vectors * (size_t)s->channels + LINE_FLOATS;
    s->value_slice = vectors * (size_t)s->share + LINE_FLOATS;
    s->data = s->kernels;
    s->values = s->data + slices * s->data_slice;
    s->floats = s->values + slices * s->value_slice;
}

// ---- Parts.

// Tiles along a side.
struct tile_run {
    int first, tiles, outputs; // of a tile
};

static int tile_runs(struct tile_run *to, int outputs, bool cut) {
    int whole = cut ? outputs / WINOGRAD_TILE : rounded_up(outputs, WINOGRAD_TILE) / WINOGRAD_TILE;
    int count = 0, left = outputs - whole * WINOGRAD_TILE;
    if (whole > 0)
        to[count++] = (struct tile_run){0, whole, WINOGRAD_TILE};
    if (left > 0)
        to[count++] = (struct tile_run){whole * WINOGRAD_TILE, 1, left};
    return count;
}

static void cut_parts(struct winograd_sizes *s, const struct window *v, bool last_row,
                      bool last_column) {
    struct tile_run down[2], across[2];
    int rows = tile_runs(down, v->out_h, last_row),
        columns = tile_runs(across, v->out_w, last_column);
    s->part_count = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            s->parts[s->part_count++] =
                (struct winograd_part){down[i].first,   across[j].first, down[i].tiles,
                                       across[j].tiles, down[i].outputs, across[j].outputs};
}

// Fitted to measurements, in vector multiply-adds for each slice: one value of a tile to the
// points and back; a vector of kernels to them once a pass, within the L2 cache and beyond; and how
// much more their gradient takes.
static const double data_cost = 12, output_cost = 8, kernel_near = 10, kernel_far = 20,
                    gradient_more = 1.35;
// Fitted too: the share of the peak that products reach, and the cost of a tile that is multiplied
// alone, in tiles.
static const double product_share = 0.85, alone_cost = 1.3;

// Of one group.
static double kernels_cost(const struct winograd_sizes *s, enum conv_pass pass, int vector) {
    double price = s->kernels > L2_FLOATS ? kernel_far : kernel_near;
    return price * (double)s->kernels / vector * (pass == CONV_BACK_WEIGHTS ? gradient_more : 1);
}

// Of one group of a block, by kernels that are at the points already.
static double cost_of(const struct winograd_sizes *s, int lanes, enum conv_pass pass) {
    bool weights = pass == CONV_BACK_WEIGHTS; // with maps in the lanes
    double channels = s->channels, maps = weights ? rounded_up(s->maps, lanes) : s->maps;
    double values = data_cost * channels + (weights ? data_cost : output_cost) * maps;
    double sum = 0;
    for (const struct winograd_part *p = s->parts; p < s->parts + s->part_count; p++) {
        int tiles = p->down * p->across, more = s->points - WINOGRAD_TILE;
        double products = tiles % WINOGRAD_COLUMNS == 1 ? tiles - 1 + alone_cost : tiles;
        sum += (p->high + more) * (p->wide + more) *
               (products * channels * maps / product_share + tiles * values);
    }
    return sum;
}

// Cuts the last tiles where the fewer points are worth parts of fewer tiles, which go through
// the kernels one after the other.
static void choose_parts(struct winograd_sizes *s, const struct window *v, int lanes,
                         enum conv_pass pass) {
    cut_parts(s, v, false, false);
    if (s->channels <= WINOGRAD_FEW)
        return;
    struct winograd_sizes cut = *s;
    double least = cost_of(s, lanes, pass);
    for (int way = 1; way < WINOGRAD_PARTS; way++) {
        cut_parts(&cut, v, way & 1, way & 2);
        double cost = cost_of(&cut, lanes, pass);
        if (cost < least) {
            least = cost;
            *s = cut;
        }
    }
}

struct winograd_sizes winograd_sizes(const struct convolution *conv, int vector,
                                     enum conv_pass pass) {
    const struct window *v = &conv->window;
    if (!possible(conv))
        return (struct winograd_sizes){0};
    struct winograd_sizes s = {
        .points = v->kernel_h + WINOGRAD_TILE - 1,
        .channels = v->c / conv->groups,
        .maps = conv->maps / conv->groups,
    };
    choose_parts(&s, v, vector, pass);
    size_t slices = (size_t)(s.points * s.points);
    int maps = rounded_up(s.maps, vector);
    s.kernel_slice = (size_t)(s.channels * vector) + (s.channels > WINOGRAD_FEW ? LINE_FLOATS : 0);
    s.kernels = slices * (size_t)(maps / vector) * s.kernel_slice;
    s.far = s.kernels > FAR_FLOATS;
    if (pass == CONV_BACK_WEIGHTS)
        lay_errors(&s, slices, vector, maps);
    else if (s.channels <= WINOGRAD_FEW)
        lay_few(&s, slices, vector);
    else
        lay_products(&s, slices, vector);
    return s;
}

// ---- Single samples.

static int single_chunk(const struct winograd_sizes *s, int vector, int of_tile) {
    size_t tile = (size_t)(s->points * s->points * vector) * (size_t)of_tile;
    int chunk = (int)(SINGLE_FLOATS / tile);
    return (chunk > SINGLE_LEAST ? chunk : SINGLE_LEAST) / WINOGRAD_COLUMNS * WINOGRAD_COLUMNS;
}

// Products lie as those of blocks do; error gradients, of all maps, behind each other.
static void lay_single(struct winograd_sizes *s, int vector, enum conv_pass pass) {
    bool weights = pass == CONV_BACK_WEIGHTS;
    size_t slices = (size_t)(s->points * s->points);
    s->chunk = single_chunk(s, vector, weights ? s->channels + s->maps : product_vectors(s));
    size_t vectors = (size_t)(s->chunk * vector);
    s->data_slice = vectors * (size_t)(weights ? s->channels : product_vectors(s)) + LINE_FLOATS;
    s->value_slice = weights ? vectors * (size_t)s->maps + LINE_FLOATS : s->data_slice;
    s->values = s->kernels;
    s->data = s->values + (weights ? slices : 1) * s->value_slice;
    s->floats = s->data + slices * s->data_slice;
}

// Fitted: what a vector of kernels costs that comes from the L3 cache, and from beyond.
static const double near_price = 2, far_price = 10;

// In vector multiply-adds, of so many samples by kernels that are at the points already.
static double single_cost(const struct winograd_sizes *s, int samples, int vector,
                          enum conv_pass pass) {
    double products = (double)s->channels * vector * s->maps, sum = 0;
    double values =
        data_cost * s->channels + (pass == CONV_BACK_WEIGHTS ? data_cost : output_cost) * s->maps;
    for (const struct winograd_part *p = s->parts; p < s->parts + s->part_count; p++) {
        double tiles = (double)samples * p->down * p->across;
        double read = ceil(tiles / s->chunk) * (s->far ? far_price : near_price);
        int more = s->points - WINOGRAD_TILE;
        sum += (p->high + more) * (p->wide + more) *
               (products * (tiles / product_share + read) + tiles * values);
    }
    return sum;
}

static void choose_single_parts(struct winograd_sizes *s, const struct window *v, int vector,
                                enum conv_pass pass) {
    struct winograd_sizes cut = *s;
    double least = INFINITY;
    for (int way = 0; way < WINOGRAD_PARTS; way++) {
        cut_parts(&cut, v, way & 1, way & 2);
        double cost = single_cost(&cut, 1, vector, pass);
        if (cost < least) {
            least = cost;
            *s = cut;
        }
    }
}

struct winograd_sizes winograd_single_sizes(const struct convolution *conv, int vector,
                                            enum conv_pass pass) {
    const struct winograd_sizes all = winograd_sizes(conv, vector, pass);
    if (all.points == 0 || conv->groups > 1 || all.channels % vector || all.maps % vector)
        return (struct winograd_sizes){0};
    struct winograd_sizes s = {
        .points = all.points,
        .channels = all.channels / vector,
        .maps = all.maps / vector,
        .far = all.far,
        .kernel_slice = all.kernel_slice,
        .kernels = all.kernels,
    };
    lay_single(&s, vector, pass);
    choose_single_parts(&s, &conv->window, vector, pass);
    return s;
}

static struct winograd_sizes sizes_of(const struct convolution *conv, int vector, bool single,
                                      enum conv_pass pass) {
    struct convolution turned = conv_turned(conv);
    return (single ? winograd_single_sizes
                   : winograd_sizes)(pass == CONV_BACK_INPUT ? &turned : conv, vector, pass);
}

size_t winograd_scratch(const struct convolution *conv, int vector) {
    size_t most = 0;
    for (enum conv_pass pass = CONV_FORWARD; pass <= CONV_BACK_WEIGHTS; pass++)
        for (int single = 0; single < 2; single++) {
            struct winograd_sizes s = sizes_of(conv, vector, single, pass);
            most = s.floats > most ? s.floats : most;
        }
    return most;
}

// ---- The choice.

// Fitted: single samples beside blocks, with the same products.
static const double singles_share = 0.87;

// Fitted: of the multiply-adds of the direct way: kernels at the points take more memory than
// weights.
static const double kept_gain = 0.9;

// Somebody may want the rounding of the direct way.
static bool switched_off(void) {
    const char *wanted = getenv("ADAM_WINOGRAD");
    return wanted && strcmp(wanted, "0") == 0;
}

bool winograd_kept_fits(const struct convolution *conv, int vector) {
    struct winograd_sizes s = winograd_single_sizes(conv, vector, CONV_FORWARD);
    double taps = (double)window_taps(&conv->window) * conv->maps * conv->window.c / vector;
    return s.points > 0 && !switched_off() &&
           single_cost(&s, 1, vector, CONV_FORWARD) < kept_gain * taps;
}

double winograd_cost(const struct convolution *conv, int blocks, int lanes, int vector,
                     enum conv_pass pass) {
    if ((lanes != vector && lanes != 1) || switched_off())
        return INFINITY;
    struct winograd_sizes s = sizes_of(conv, vector, lanes == 1, pass);
    if (s.points == 0)
        return INFINITY;
    double kernels = kernels_cost(&s, pass, vector);
    return lanes == 1 ? kernels + single_cost(&s, blocks, vector, pass) / singles_share
                      : conv->groups * (kernels + blocks * cost_of(&s, vector, pass));
}
