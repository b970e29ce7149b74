// Pictures as PGM (gray) and PPM (RGB), one behind the other.
#include <stdlib.h>

#include "core/error.h"
#include "sample/sink_kind.h"

static int open_pnm(struct sink *sink, struct error *err) {
    (void)err;
    sink->options.codec = sink->kind->codec;
    return STATUS_OK;
}

static void free_pnm(struct sink *sink) {
    (void)sink;
}

static int pnm_put(struct sink *sink, const struct sample *sample, struct error *err) {
    const void *data;
    size_t size;
    enum codec codec;
    int status = sink_encode(sink, sample, &data, &size, &codec, err);
    return status ? status : output_write(sink->output, data, size, err);
}

static int pnm_finish(struct sink *sink, struct error *err) {
    (void)sink;
    (void)err;
    return STATUS_OK;
}

const struct sink_kind sink_pnm = {
    .name = "pnm",
    .codec = CODEC_PNM,
    .open = open_pnm,
    .put = pnm_put,
    .finish = pnm_finish,
    .free = free_pnm,
};
