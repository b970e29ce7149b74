#include "role/controller/quorum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "cluster/record.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/random.h"
#include "net/relink.h"
#include "role/request_queue.h"

// Seconds for which a leader that takes a higher ballot is still believed to lead, and for which a
// proposal waits for it.
static const double between_ballots = 1;

struct quorum {
    struct quorum_config config;
    char *path; // of the record
    int lock_file;
    uint64_t hash;
    char name[32];                           // of this controller
    struct relink *peers[PAXOS_MEMBERS_MAX]; // NULL: itself
    struct request_queue inbox;              // messages of the others
    struct gate work;                        // for its thread
    struct gate changed;                     // for a proposal
    pthread_t thread;
    bool started;
    _Atomic bool closing;

    pthread_mutex_t lock;  // of all that follows
    struct record *record; // NULL: none yet, of a controller alone
    struct error failed;   // why it takes part no more
    double led;            // clock_seconds when it led last; 0: never
    uint64_t confirmed;    // milliseconds, when it gave a lease last
    uint64_t told;         // version of the state that its controller knows
    double heard[PAXOS_MEMBERS_MAX];
};

static bool is_alone(const struct quorum *quorum) {
    return quorum->config.members == 1;
}

// --- steps, under the lock ----------------------------------------------------------------------

static bool stands_to_lead(const struct quorum *quorum) {
    return paxos_standing(record_paxos(quorum->record)) != PAXOS_FOLLOWER;
}

static void send_message(void *self, const struct proto_paxos *message) {
    const struct quorum *quorum = self;
    relink_send(quorum->peers[message->to], PROTO_TYPE_PAXOS, message);
}

static void end_step(struct quorum *quorum, int status, const struct error *err) {
    if (status && !quorum->failed.status)
        quorum->failed = *err;
    if (paxos_standing(record_paxos(quorum->record)) == PAXOS_LEADER)
        quorum->led = clock_seconds();
}

static void take_messages(struct quorum *quorum) {
    struct queued_request *queued;
    while (!quorum->failed.status && (queued = request_queue_take(&quorum->inbox))) {
        const struct proto_paxos *message = &queued->message->message.paxos;
        struct paxos_output output;
        struct error err = {0};
        if (message->from < quorum->config.members)
            quorum->heard[message->from] = clock_seconds();
        int status = record_receive(quorum->record, message, &output, &err);
        end_step(quorum, status, &err);
        queued_request_free(queued);
    }
}

static void let_time_pass(struct quorum *quorum) {
    struct paxos_output output;
    struct error err = {0};
    if (quorum->failed.status || record_due(quorum->record) > 0)
        return;
    int status = record_tick(quorum->record, &output, &err);
    end_step(quorum, status, &err);
}

// What others look at here.
struct view {
    bool ready, lacks_record;
    uint32_t leader;
    int failed;
    uint64_t version;
};

static struct view view_of(const struct quorum *quorum) {
    const struct paxos *paxos = record_paxos(quorum->record);
    struct paxos_state state;
    return (struct view){
        .ready = paxos_ready(paxos),
        .lacks_record = paxos_blank(paxos),
        .leader = paxos_leader(paxos),
        .failed = quorum->failed.status,
        .version = paxos_committed(paxos, &state) ? state.version : 0,
    };
}

static void tell_changes(struct quorum *quorum, struct view *before) {
    struct view now = view_of(quorum);
    if (now.ready == before->ready && now.lacks_record == before->lacks_record &&
        now.leader == before->leader && now.failed == before->failed &&
        now.version == before->version)
        return;
    *before = now;
    gate_open(&quorum->changed);
    gate_open(quorum->config.gate);
}

static void *quorum_thread(void *context) {
    struct quorum *quorum = context;
    struct view told = {0};
    while (!atomic_load(&quorum->closing)) {
        uint32_t seen = gate_look(&quorum->work);
        pthread_mutex_lock(&quorum->lock);
        take_messages(quorum);
        let_time_pass(quorum);
        double due = quorum->failed.status ? 1 : record_due(quorum->record);
        tell_changes(quorum, &told);
        pthread_mutex_unlock(&quorum->lock);
        gate_wait(&quorum->work, seen, due);
    }
    return NULL;
}

// --- agreement ----------------------------------------------------------------------------------

static int leads_no_more(struct error *err) {
    return error_set(err, STATUS_UNAVAILABLE, "this controller leads no more");
}

// *over: the proposal of this version is agreed on, or another may be.
static int look_at_proposal(struct quorum *quorum, uint64_t version, const char *text, bool *over,
                            struct error *err) {
    struct paxos_state state;
    *over = true;
    if (quorum->failed.status) {
        *err = quorum->failed;
        return err->status;
    }
    bool known = paxos_committed(record_paxos(quorum->record), &state);
    if (known && state.version >= version) {
        bool same = state.version == version && state.length == strlen(text) &&
                    !memcmp(state.bytes, text, state.length);
        quorum->told = same ? version : quorum->told;
        return same ? STATUS_OK : leads_no_more(err);
    }
    if (!stands_to_lead(quorum) || clock_seconds() > quorum->led + between_ballots)
        return leads_no_more(err);
    *over = false;
    return STATUS_OK;
}

// A leader that takes a higher ballot can propose when it has it.
static bool is_between_ballots(const struct quorum *quorum) {
    return !quorum->failed.status && stands_to_lead(quorum) &&
           !paxos_ready(record_paxos(quorum->record)) &&
           clock_seconds() <= quorum->led + between_ballots;
}

// Has it sent to the others; they must have it before the version is agreed on. Another may have
// led for a moment, and what it had agreed on must not be forgotten: "each state is made from its
// predecessor". *begun stays false where the leader is between ballots.
static int begin_proposal(struct quorum *quorum, const char *text, uint64_t *version, bool *begun,
                          struct error *err) {
    struct paxos_output output;
    pthread_mutex_lock(&quorum->lock);
    int status = quorum->failed.status;
    if (status)
        *err = quorum->failed;
    if (!status && paxos_record(record_paxos(quorum->record)).state.version != quorum->told)
        status = leads_no_more(err);
    *begun = !status && !is_between_ballots(quorum);
    if (*begun)
        status = record_propose(quorum->record, text, &output, err);
    if (*begun && (!status || status == STATUS_IO || status == STATUS_CANTCREATE))
        end_step(quorum, status, err);
    *version = paxos_record(record_paxos(quorum->record)).state.version;
    pthread_mutex_unlock(&quorum->lock);
    if (*begun)
        gate_open(&quorum->work);
    return status;
}

static int propose_to_others(struct quorum *quorum, const char *text, struct error *err) {
    uint64_t version;
    bool begun = false, over = false;
    int status = STATUS_OK;
    while (!status && !over) {
        uint32_t seen = gate_look(&quorum->changed);
        if (!begun)
            status = begin_proposal(quorum, text, &version, &begun, err);
        pthread_mutex_lock(&quorum->lock);
        if (begun && !status)
            status = look_at_proposal(quorum, version, text, &over, err);
        pthread_mutex_unlock(&quorum->lock);
        if (!status && !over)
            gate_wait(&quorum->changed, seen, between_ballots);
    }
    return status;
}

static int open_record(struct quorum *quorum, struct error *err) {
    struct record_options options = {
        .id = quorum->config.id,
        .members = quorum->config.members,
        .rejoin = quorum->config.rejoin,
        .send = send_message,
        .self = quorum,
    };
    if (getrandom(&options.start, sizeof options.start, 0) != sizeof options.start)
        return error_errno(err, STATUS_IO, "getrandom");
    return record_open(&quorum->record, quorum->path, &options, err);
}

static int propose_alone(struct quorum *quorum, const char *text, struct error *err) {
    struct paxos_output output;
    int status = quorum->record ? STATUS_OK : open_record(quorum, err);
    return status ? status : record_propose(quorum->record, text, &output, err);
}

static int propose_state(void *self, const char *text, struct error *err) {
    struct quorum *quorum = self;
    struct error own = {0};
    int status = is_alone(quorum) ? propose_alone(quorum, text, &own)
                                  : propose_to_others(quorum, text, &own);
    if (status && err)
        *err = own;
    return status;
}

struct agreement quorum_agreement(struct quorum *quorum) {
    return (struct agreement){quorum, propose_state};
}

// --- what there is to see -----------------------------------------------------------------------

bool quorum_ready(struct quorum *quorum) {
    if (is_alone(quorum))
        return true;
    pthread_mutex_lock(&quorum->lock);
    bool ready = !quorum->failed.status && paxos_ready(record_paxos(quorum->record));
    pthread_mutex_unlock(&quorum->lock);
    return ready;
}

bool quorum_leads(struct quorum *quorum) {
    if (is_alone(quorum))
        return true;
    pthread_mutex_lock(&quorum->lock);
    bool leads = !quorum->failed.status && stands_to_lead(quorum) &&
                 clock_seconds() < quorum->led + between_ballots;
    pthread_mutex_unlock(&quorum->lock);
    return leads;
}

double quorum_lease(struct quorum *quorum, double lease) {
    if (is_alone(quorum))
        return lease;
    pthread_mutex_lock(&quorum->lock);
    double now = clock_seconds();
    uint64_t confirmed = paxos_confirmed(record_paxos(quorum->record), (uint64_t)(now * 1000));
    quorum->confirmed = confirmed ? confirmed : quorum->confirmed;
    pthread_mutex_unlock(&quorum->lock);
    return confirmed ? (double)confirmed / 1000 + lease - now : 0;
}

double quorum_inherited(struct quorum *quorum) {
    if (is_alone(quorum))
        return clock_seconds();
    pthread_mutex_lock(&quorum->lock);
    uint64_t inherited = paxos_inherited(record_paxos(quorum->record));
    if (inherited < quorum->confirmed) // its own, as a leader before
        inherited = quorum->confirmed;
    pthread_mutex_unlock(&quorum->lock);
    return (double)(inherited + 1) / 1000;
}

uint32_t quorum_leader(struct quorum *quorum) {
    if (is_alone(quorum))
        return 0;
    pthread_mutex_lock(&quorum->lock);
    uint32_t leader = paxos_leader(record_paxos(quorum->record));
    pthread_mutex_unlock(&quorum->lock);
    return leader;
}

int quorum_status(struct quorum *quorum, struct error *err) {
    pthread_mutex_lock(&quorum->lock);
    int status = quorum->failed.status;
    if (status && err)
        *err = quorum->failed;
    pthread_mutex_unlock(&quorum->lock);
    return status;
}

bool quorum_lacks_record(struct quorum *quorum) {
    pthread_mutex_lock(&quorum->lock);
    const struct paxos *paxos = quorum->record ? record_paxos(quorum->record) : NULL;
    bool lacks = paxos && paxos_blank(paxos) && paxos_leader(paxos) != PROTO_NOBODY;
    pthread_mutex_unlock(&quorum->lock);
    return lacks;
}

char *quorum_state(struct quorum *quorum, uint64_t *version) {
    struct paxos_state state;
    char *text = NULL;
    *version = 0;
    pthread_mutex_lock(&quorum->lock);
    bool known = quorum->record && paxos_committed(record_paxos(quorum->record), &state);
    quorum->told = known ? state.version : 0;
    if (known && state.length) {
        text = mem_text((const char *)state.bytes, state.length);
        *version = state.version;
    }
    pthread_mutex_unlock(&quorum->lock);
    return text;
}

uint64_t quorum_hash(const struct quorum *quorum) {
    return quorum->hash;
}

void quorum_receive(struct quorum *quorum, struct link *link, const union proto_message *message) {
    request_queue_add(&quorum->inbox, link, 0, PROTO_TYPE_PAXOS, message, NULL);
}

int quorum_ask(struct quorum *quorum, uint32_t id, struct link_request *request,
               struct error *err) {
    return relink_ask(quorum->peers[id], request, err);
}

double quorum_silence(struct quorum *quorum, uint32_t id) {
    pthread_mutex_lock(&quorum->lock);
    double heard = quorum->heard[id];
    pthread_mutex_unlock(&quorum->lock);
    return heard > 0 ? clock_seconds() - heard : -1;
}

// --- life ---------------------------------------------------------------------------------------

static uint64_t hash_members(const struct quorum_config *config) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < config->members; i++)
        hash = (hash << 7 | hash >> 57) ^
               hash_bytes(config->addresses[i], strlen(config->addresses[i]));
    return hash;
}

// Two processes that are one member would break the promises of each other.
static int lock_record(struct quorum *quorum, struct error *err) {
    char *name = NULL;
    if (asprintf(&name, "%s.lock", quorum->path) < 0)
        return error_nomem(err);
    quorum->lock_file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int status = STATUS_OK;
    if (quorum->lock_file < 0)
        status = error_errno(err, STATUS_CANTCREATE, "%s", name);
    else if (flock(quorum->lock_file, LOCK_EX | LOCK_NB))
        status = error_set(err, STATUS_CANTCREATE, "%s: another process is this controller", name);
    free(name);
    return status;
}

static int open_peers(struct quorum *quorum, struct error *err) {
    const struct quorum_config *config = &quorum->config;
    int status = STATUS_OK;
    snprintf(quorum->name, sizeof quorum->name, "controller-%u", config->id + 1);
    for (uint32_t i = 0; !status && i < config->members; i++) {
        const struct relink_config peer = {
            .address = config->addresses[i],
            .hello = {.role = PROTO_ROLE_CONTROLLER,
                      .model = quorum->hash,
                      .name = proto_text(quorum->name)},
            .keys = config->keys,
            .insecure = config->insecure,
        };
        if (i != config->id)
            status = relink_open(&quorum->peers[i], &peer, err);
    }
    return status;
}

static int take_part(struct quorum *quorum, struct error *err) {
    quorum->hash = hash_members(&quorum->config);
    int status = lock_record(quorum, err);
    if (!status)
        status = open_record(quorum, err);
    if (!status)
        status = open_peers(quorum, err);
    if (!status && pthread_create(&quorum->thread, NULL, quorum_thread, quorum))
        status = error_set(err, STATUS_IO, "cannot start a thread");
    quorum->started = !status;
    return status;
}

// That of a controller alone has no number.
static char *record_path(const struct quorum_config *config) {
    char *path = NULL;
    int length = config->members == 1 ? asprintf(&path, "%s/controller.state", config->folder)
                                      : asprintf(&path, "%s/controller-%" PRIu32 ".state",
                                                 config->folder, config->id + 1);
    return length < 0 ? NULL : path;
}

int quorum_open(struct quorum **out, const struct quorum_config *config, struct error *err) {
    struct quorum *quorum = mem_zeroed(1, sizeof *quorum);
    if (!quorum)
        return error_nomem(err);
    quorum->config = *config;
    quorum->lock_file = -1;
    quorum->path = record_path(config);
    request_queue_open(&quorum->inbox, &quorum->work);
    pthread_mutex_init(&quorum->lock, NULL);
    int status = quorum->path ? STATUS_OK : error_nomem(err);
    if (!status && !is_alone(quorum))
        status = take_part(quorum, err);
    if (status)
        quorum_close(quorum);
    else
        *out = quorum;
    return status;
}

int quorum_recall(struct quorum *quorum, struct error *err) {
    bool there = !quorum->record && record_exists(quorum->path);
    return there ? open_record(quorum, err) : STATUS_OK;
}

void quorum_close(struct quorum *quorum) {
    if (!quorum)
        return;
    atomic_store(&quorum->closing, true);
    gate_open(&quorum->work);
    if (quorum->started)
        pthread_join(quorum->thread, NULL);
    for (uint32_t i = 0; i < quorum->config.members; i++)
        relink_close(quorum->peers[i]);
    request_queue_close(&quorum->inbox);
    record_close(quorum->record);
    if (quorum->lock_file >= 0)
        close(quorum->lock_file);
    pthread_mutex_destroy(&quorum->lock);
    free(quorum->path);
    free(quorum);
}
