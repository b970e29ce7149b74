#include <string.h>

#include "ps/ps_internal.h"

const struct objection session_over = {PROTO_REFUSAL_WRONG_SESSION, 0, "the session is over"};
static const struct objection fine = {PROTO_REFUSAL_NONE, 0, ""};

static size_t align_size(size_t size) {
    return (size + 15) & ~(size_t)15;
}

// --- making -----------------------------------------------------------------------------

// A request for these pieces, from the pool: "Small object allocations are satisfied by our
// global lock free pool for the object" (Adam 3.3.1). NULL when there is no room.
static struct request *request_make(struct ps *ps, const struct proto_list *list) {
    size_t n = list->count, head = align_size(sizeof(struct request));
    size_t pieces = align_size(n * sizeof(struct proto_piece)),
           places = align_size(n * sizeof(uint64_t));
    size_t subrequests = align_size(n * sizeof(struct subrequest)),
           answers = n * sizeof(struct ps_extent);
    struct buffer *home = pool_take(&ps->records, head + pieces + places + subrequests + answers);
    if (!home)
        return NULL;
    char *at = home->data;
    struct request *request = memset(at, 0, head);
    request->ps = ps;
    request->home = home;
    request->objection = fine;
    request->pieces = (struct proto_piece *)(void *)(at += head);
    request->places = (uint64_t *)(void *)(at += pieces);
    request->subrequests = (struct subrequest *)(void *)(at += places);
    request->answers = (struct ps_extent *)(void *)(at += subrequests);
    request->piece_count = list->count;
    if (n)
        memcpy(request->pieces, list->at, n * sizeof *request->pieces);
    return request;
}

// One subrequest for each run of pieces of one shard.
static void make_subrequests(struct request *request) {
    uint64_t place = 0;
    struct subrequest *sub = NULL;
    for (uint32_t i = 0; i < request->piece_count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        if (!sub || sub->shard != piece->shard) {
            sub = &request->subrequests[request->subrequest_count++];
            *sub = (struct subrequest){
                .request = request, .shard = piece->shard, .first = i, .version = UINT64_MAX};
        }
        sub->count++;
        sub->floats += piece->count;
        sub->version = piece->version < sub->version ? piece->version : sub->version;
        request->places[i] = place;
        place += piece->count;
    }
}

// --- form -------------------------------------------------------------------------------

static struct objection wrong_shape(uint64_t piece, const char *text) {
    return (struct objection){PROTO_REFUSAL_WRONG_SHAPE, piece, text};
}

static struct objection check_pieces(const struct request *request, bool ascending) {
    uint64_t end = 0;
    if (!request->piece_count)
        return wrong_shape(0, "no pieces");
    for (uint32_t i = 0; i < request->piece_count; i++) {
        const struct proto_piece *piece = &request->pieces[i];
        if (piece->shard >= request->ps->shard_count)
            return wrong_shape(i, "the model has no such shard");
        size_t floats = shard_floats(request->ps, piece->shard);
        if (!piece->count || piece->offset >= floats || piece->count > floats - piece->offset)
            return wrong_shape(i, "a piece is not within its shard");
        uint64_t begin = shard_begin(piece->shard) + piece->offset;
        if (ascending && begin < end)
            return wrong_shape(i, "pieces overlap, or do not ascend");
        end = begin + piece->count;
    }
    return fine;
}

static struct objection check_session(struct request *request, uint64_t number) {
    request->session = members_find(&request->ps->members, number);
    if (!request->session)
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN,
                                  "word of this session has not come here yet"};
    if (!atomic_load(&request->session->works))
        return session_over;
    return fine;
}

static struct objection check_payload(const struct request *request, uint64_t floats) {
    size_t size = request->payload ? request->payload->size : 0;
    return size == floats * sizeof(float)
               ? fine
               : wrong_shape(0, "the payload is not as long as the pieces say");
}

static uint64_t floats_of(const struct request *request) {
    uint64_t floats = 0;
    for (uint32_t i = 0; i < request->piece_count; i++)
        floats += request->pieces[i].count;
    return floats;
}

// What all pushes have in common.
static struct objection check_push(struct request *request, uint64_t session) {
    struct objection objection = check_session(request, session);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_pieces(request, true);
    if (objection.code != PROTO_REFUSAL_NONE)
        return objection;
    if (atomic_load(&request->ps->paused))
        return (struct objection){PROTO_REFUSAL_BUSY, PS_AGAIN,
                                  "the disk of this server cannot keep up"};
    if (!request->sequence)
        return (struct objection){PROTO_REFUSAL_MALFORMED, 0, "pushes are numbered from 1"};
    if (!(request->rate >= 0 && request->rate <= PS_RATE_MOST))
        return (struct objection){PROTO_REFUSAL_BAD_SETTING, 0,
                                  "the learning rate is not from 0 to 1e9"};
    return fine;
}

// The layer whose weights are this matrix; NULL: none.
static const struct layer *find_layer(const struct ps *ps, const struct proto_push_factors *push) {
    for (size_t i = 0; i < ps->tensor_count; i++) {
        const struct layer *layer = ps->tensors[i].layer;
        const struct parameter *weights = &layer->weights, *biases = &layer->biases;
        if (ps->tensors[i].kind == TENSOR_WEIGHTS && weights->offset == push->weights &&
            weights->rank == 2 && (uint32_t)weights->dims[0] == push->rows &&
            (uint32_t)weights->dims[1] == push->columns)
            return push->biases == PROTO_NOWHERE ||
                           (biases->count == push->rows && biases->offset == push->biases)
                       ? layer
                       : NULL;
    }
    return NULL;
}

static bool is_within(const struct proto_piece *piece, const struct parameter *parameter) {
    size_t begin = shard_begin(piece->shard) + piece->offset;
    return begin >= parameter->offset &&
           begin + piece->count <= parameter->offset + parameter->count;
}

// Pieces lie within the weights or the biases, or reach from one into the other.
static struct objection check_factor_pieces(const struct request *request) {
    const struct layer *layer = request->factors.layer;
    struct parameter both = layer->weights;
    if (request->factors.biases && layer->biases.offset == both.offset + both.count)
        both.count += layer->biases.count;
    for (uint32_t i = 0; i < request->piece_count; i++)
        if (!is_within(&request->pieces[i], &both) &&
            !(request->factors.biases && is_within(&request->pieces[i], &layer->biases)))
            return wrong_shape(i, "a piece is not of the layer");
    return fine;
}

static struct objection check_factors(struct request *request,
                                      const struct proto_push_factors *message) {
    struct objection objection = check_push(request, message->session);
    if (objection.code != PROTO_REFUSAL_NONE)
        return objection;
    const struct layer *layer = find_layer(request->ps, message);
    if (!layer)
        return wrong_shape(0, "no layer has its weights and biases there");
    request->factors = (struct factors){
        .layer = layer,
        .errors = request->floats,
        .inputs =
            request->floats ? request->floats + (size_t)message->samples * message->rows : NULL,
        .rows = message->rows,
        .columns = message->columns,
        .biases = message->biases != PROTO_NOWHERE,
    };
    objection = check_factor_pieces(request);
    return objection.code != PROTO_REFUSAL_NONE
               ? objection
               : check_payload(request,
                               ((uint64_t)message->rows + message->columns) * message->samples);
}

// --- ending -----------------------------------------------------------------------------

static uint64_t floats_covered(const struct request *request) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < request->piece_count; i++)
        sum += request->pieces[i].count;
    return sum;
}

static void count_answer(struct request *request, const struct ps_answer *answer) {
    struct counters *counters = &request->ps->counters;
    if (answer->code != PROTO_REFUSAL_NONE) {
        atomic_fetch_add(&counters->refused[answer->code & 31], 1);
    } else if (request->kind == REQUEST_PULL) {
        atomic_fetch_add(&counters->pulls, 1);
        atomic_fetch_add(&counters->unchanged, answer->piece_count - answer->extent_count);
    } else if (answer->repeated) {
        atomic_fetch_add(&counters->repeated, 1);
    } else if (request->kind < REQUEST_STORE) {
        atomic_fetch_add(&counters->pushes, 1);
        atomic_fetch_add(&counters->sample_floats, request->samples * floats_covered(request));
    }
}

float *request_floats(const struct request *request) {
    const struct ps *ps = request->ps;
    int state = (int)request->quantity - PROTO_QUANTITY_STATE;
    return state < 0 ? ps->weights : state < ps->states ? ps_state(ps, state) : NULL;
}

// The pieces that the asker does not have, as they are now.
static uint32_t fill_extents(struct request *request) {
    struct ps *ps = request->ps;
    const float *from = request_floats(request);
    uint32_t n = 0;
    for (uint32_t i = 0; i < request->piece_count; i++) {
        struct proto_piece *piece = &request->pieces[i];
        uint64_t version = shard_told(ps, &ps->shards[piece->shard]);
        if (piece->version && piece->version == version) {
            piece->count = 0;
            continue;
        }
        piece->version = version;
        request->answers[n++] = (struct ps_extent){from + shard_begin(piece->shard) + piece->offset,
                                                   piece->count * sizeof(float)};
    }
    return n;
}

// Whether the lease ended before the answer was complete: others may serve the shard already.
static bool outlived(const struct request *request) {
    for (uint32_t i = 0; i < request->piece_count; i++)
        if (shard_outlived(request->ps, &request->ps->shards[request->pieces[i].shard]))
            return true;
    return false;
}

static void fill_versions(struct request *request) {
    for (uint32_t i = 0; i < request->subrequest_count; i++) {
        const struct subrequest *sub = &request->subrequests[i];
        for (uint32_t k = sub->first; k < sub->first + sub->count; k++)
            request->pieces[k].version = sub->version;
    }
}

// That of the whole, or of the first subrequest that has one.
static struct objection first_objection(const struct request *request) {
    struct objection objection = request->objection;
    for (uint32_t i = 0; i < request->subrequest_count && objection.code == PROTO_REFUSAL_NONE; i++)
        objection = request->subrequests[i].objection;
    return objection;
}

static void request_end(struct request *request) {
    struct objection objection = first_objection(request);
    struct ps_answer answer = {
        .code = objection.code,
        .detail = objection.detail,
        .text = objection.text ? objection.text : "",
        .pieces = request->pieces,
        .piece_count = request->piece_count,
        .extents = request->answers,
    };
    if (answer.code == PROTO_REFUSAL_NONE && request->kind == REQUEST_PULL) {
        answer.extent_count = fill_extents(request);
        if (outlived(request)) {
            answer.code = PROTO_REFUSAL_BUSY;
            answer.detail = PS_AGAIN;
        }
    } else if (answer.code == PROTO_REFUSAL_NONE) {
        fill_versions(request);
        answer.repeated = !atomic_load(&request->applied);
    }
    count_answer(request, &answer);
    request->done(request->context, &answer);
    buffer_drop(request->payload);
    buffer_drop(request->home);
}

void subrequest_done(struct subrequest *sub) {
    if (atomic_fetch_sub(&sub->request->unfinished, 1) == 1)
        request_end(sub->request);
}

void subrequest_refuse(struct subrequest *sub, struct objection objection) {
    sub->objection = objection;
    subrequest_done(sub);
}

void request_decide(struct request *request) {
    request->objection = first_objection(request);
    if (request->objection.code == PROTO_REFUSAL_NONE && request->kind == REQUEST_FACTORS)
        request->objection = examine_product(request);
}

// --- beginning --------------------------------------------------------------------------

struct asker {
    struct ps *ps;
    struct buffer *payload;
    ps_done *done;
    void *context;
};

// NULL: there is no memory, and the caller was told.
static struct request *request_open(const struct asker *asker, enum request_kind kind,
                                    const struct proto_list *pieces) {
    struct request *request = request_make(asker->ps, pieces);
    if (!request) {
        atomic_fetch_add(&asker->ps->counters.refused[PROTO_REFUSAL_BUSY], 1);
        asker->done(asker->context, &(struct ps_answer){.code = PROTO_REFUSAL_BUSY,
                                                        .detail = PS_AGAIN,
                                                        .text = "too many requests under way"});
        return NULL;
    }
    request->kind = kind;
    request->done = asker->done;
    request->context = asker->context;
    request->payload = asker->payload;
    if (asker->payload) {
        buffer_hold(asker->payload);
        request->floats = asker->payload->data;
    }
    return request;
}

// Hands the subrequests to their shards. The last one may end the request at once.
static void request_begin(struct request *request, struct objection objection) {
    request->objection = objection;
    if (objection.code != PROTO_REFUSAL_NONE) {
        request_end(request);
        return;
    }
    make_subrequests(request);
    uint32_t n = request->subrequest_count;
    atomic_store(&request->unexamined, n);
    atomic_store(&request->unfinished, n);
    struct ps *ps = request->ps;
    struct subrequest *subrequests = request->subrequests;
    for (uint32_t i = 0; i < n; i++)
        shard_post(ps, &subrequests[i]);
}

void ps_push(struct ps *ps, const struct proto_push *message, struct buffer *payload, ps_done *done,
             void *context) {
    struct asker asker = {ps, payload, done, context};
    bool delta = message->kind == PROTO_UPDATE_DELTA;
    struct request *request =
        request_open(&asker, delta ? REQUEST_DELTA : REQUEST_GRADIENT, &message->pieces);
    if (!request)
        return;
    request->sequence = message->sequence;
    request->samples = message->samples;
    request->rate = message->rate;
    struct objection objection = check_push(request, message->session);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_payload(request, message->samples ? floats_of(request) : 0);
    request_begin(request, objection);
}

void ps_push_factors(struct ps *ps, const struct proto_push_factors *message,
                     struct buffer *payload, ps_done *done, void *context) {
    struct asker asker = {ps, payload, done, context};
    struct request *request = request_open(&asker, REQUEST_FACTORS, &message->pieces);
    if (!request)
        return;
    request->sequence = message->sequence;
    request->samples = message->samples;
    request->rate = message->rate;
    request_begin(request, check_factors(request, message));
}

static struct objection check_state(const struct request *request) {
    if (request->quantity != PROTO_QUANTITY_WEIGHT && !request_floats(request))
        return (struct objection){PROTO_REFUSAL_BAD_SETTING, 0,
                                  "this optimizer keeps no such state"};
    return fine;
}

void ps_store(struct ps *ps, const struct proto_store *message, struct buffer *payload,
              ps_done *done, void *context) {
    struct asker asker = {ps, payload, done, context};
    struct request *request = request_open(&asker, REQUEST_STORE, &message->pieces);
    if (!request)
        return;
    request->quantity = (enum proto_quantity)message->quantity;
    struct objection objection = check_state(request);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_pieces(request, true);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_payload(request, floats_of(request));
    request_begin(request, objection);
}

// Whether each piece can be had now.
static struct objection check_availability(struct request *request) {
    struct objection objection = fine;
    make_subrequests(request);
    for (uint32_t i = 0; i < request->subrequest_count && objection.code == PROTO_REFUSAL_NONE; i++)
        objection = shard_objection(request->ps, &request->subrequests[i]);
    request->subrequest_count = 0;
    return objection;
}

static struct objection check_answer_size(const struct request *request) {
    uint64_t bytes = floats_of(request) * sizeof(float);
    if (bytes <= PROTO_PAYLOAD_MAX)
        return fine;
    return (struct objection){PROTO_REFUSAL_TOO_LARGE, PROTO_PAYLOAD_MAX,
                              "the answer would be: pull in parts"};
}

void ps_pull(struct ps *ps, const struct proto_pull *message, ps_done *done, void *context) {
    struct asker asker = {ps, NULL, done, context};
    struct request *request = request_open(&asker, REQUEST_PULL, &message->pieces);
    if (!request)
        return;
    request->quantity = (enum proto_quantity)message->quantity;
    request->least = message->least;
    request->session = members_find(&ps->members, message->session);
    struct objection objection = check_state(request);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_pieces(request, false);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_answer_size(request);
    if (objection.code == PROTO_REFUSAL_NONE)
        objection = check_availability(request);
    if (request->least) {
        request_begin(request, objection);
    } else {
        request->objection = objection;
        request_end(request);
    }
}

// --- copies -----------------------------------------------------------------------------

static void begin_copy(const struct asker *asker, enum request_kind kind,
                       struct ps_snapshot *snapshot) {
    const struct ps *ps = asker->ps;
    struct proto_piece piece = {.shard = snapshot->shard};
    if (snapshot->shard < ps->shard_count)
        piece.count = (uint32_t)shard_floats(ps, snapshot->shard);
    const struct proto_list pieces = {&piece, 1};
    struct request *request = request_open(asker, kind, &pieces);
    if (!request)
        return;
    request->snapshot = snapshot;
    request_begin(request, check_pieces(request, true));
}

void ps_snapshot(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context) {
    const struct asker asker = {ps, NULL, done, context};
    begin_copy(&asker, REQUEST_SNAPSHOT, snapshot);
}

void ps_install(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context) {
    const struct asker asker = {ps, NULL, done, context};
    begin_copy(&asker, REQUEST_INSTALL, snapshot);
}

void ps_restore(struct ps *ps, struct ps_snapshot *snapshot, ps_done *done, void *context) {
    const struct asker asker = {ps, NULL, done, context};
    begin_copy(&asker, REQUEST_RESTORE, snapshot);
}
