// What goes wrong in a schedule, and the healing at its end.
#include <string.h>

#include "sim.h"

enum {
    STEP = 20,
    CALM = 400, // after a crash, until the controllers know of it: nobody else falls silent
};

static uint32_t one_of(struct world *w, const uint32_t *choices, uint32_t count) {
    return choices[drawn(w, count)];
}

// How rough this schedule is, and how large the cluster.
void faults_begin(struct world *w) {
    static const uint32_t controllers[] = {1, 3, 3, 3, 3, 5}, copies[] = {1, 2, 2, 3, 3, 3};
    static const uint32_t losses[] = {0, 0, 10, 50, 200}, rates[] = {0, 20, 60, 120, 250};
    static const uint32_t everies[] = {20, 50, 100, 200}, flushes[] = {10, 30, 30, 150};
    w->controller_count = one_of(w, controllers, 6);
    w->copies = one_of(w, copies, 6);
    w->server_count = w->copies + drawn(w, SERVERS - w->copies);
    w->worker_count = 1 + drawn(w, WORKERS);
    w->shard_count = 1 + drawn(w, SHARDS);
    w->bucket_count = 1 + drawn(w, BUCKETS);
    w->memory_ack = happens(w, 150);
    w->stored = happens(w, 600);
    w->durable = w->stored && !w->memory_ack && happens(w, 350);
    w->every = one_of(w, everies, 4);
    w->flush = one_of(w, flushes, 4);
    w->loss = one_of(w, losses, 5);
    w->twice = one_of(w, losses, 5);
    w->slow = one_of(w, losses, 5);
    w->slowness = happens(w, 300) ? 800 : 150;
    w->rate = one_of(w, rates, 5);
    w->heal_at = 300 + drawn(w, 1700);
    for (uint32_t i = 0; i < w->controller_count; i++)
        controller_start(w, i);
    for (uint32_t i = 0; i < SERVERS; i++) {
        sim_begin(&w->stores[i].disk);
        w->stores[i].disk.seed = w->seed * SERVERS + i;
    }
    for (uint32_t i = 0; i < w->server_count; i++)
        server_start(w, i);
    for (uint32_t i = 0; i < WORKERS + READERS; i++) {
        w->nodes[FIRST_CLIENT + i].up = i < w->worker_count || i >= WORKERS;
        if (i < w->worker_count)
            w->clients[i].wanted = 8 + drawn(w, PUSHES - 8);
    }
}

// --- processes ----------------------------------------------------------------------------

// Where others have all that it has, what is on its disk may be lost, too.
static void crash_server(struct world *w) {
    uint32_t slot = drawn(w, SERVERS);
    bool rash = w->stored && happens(w, 200);
    if (!w->nodes[FIRST_SERVER + slot].up || (!rash && !may_crash(w, slot)))
        return;
    server_end(w, slot, happens(w, 300) ? CRASH_POWER : CRASH_KILLED);
    if (w->stored && !rash && w->slow == 0 && happens(w, 200))
        store_replace(w, slot);
    w->calm_until = w->now + CALM;
}

static void crash_controller(struct world *w) {
    uint32_t i = drawn(w, w->controller_count);
    if (w->nodes[i].up)
        controller_crash(w, i);
}

// Of all machines at once.
static void cut_power(struct world *w) {
    trace(w, "the power goes");
    uint32_t burnt = drawn(w, w->server_count);
    // What is on its way for long lets a server seem to live that has died.
    bool burns =
        w->slow == 0 && happens(w, 300) && w->nodes[FIRST_SERVER + burnt].up && may_crash(w, burnt);
    for (uint32_t i = 0; i < w->server_count; i++)
        if (w->nodes[FIRST_SERVER + i].up)
            server_end(w, i, CRASH_POWER);
    if (burns)
        store_replace(w, burnt);
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (w->nodes[i].up)
            controller_crash(w, i);
}

static void pause_node(struct world *w) {
    uint32_t i = drawn(w, FIRST_CLIENT);
    if (!w->nodes[i].up)
        return;
    if (w->nodes[i].paused == 0 || w->now > w->nodes[i].paused + store_window(w))
        w->nodes[i].since = w->now;
    w->nodes[i].paused = w->now + 20 + drawn(w, happens(w, 500) ? 60 : 400);
    trace(w, "node %u stops until %llu", i, (unsigned long long)w->nodes[i].paused);
}

static void restart_some(struct world *w, uint32_t thousandths) {
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (!w->nodes[i].up && happens(w, thousandths))
            controller_start(w, i);
    for (uint32_t i = 0; i < w->server_count; i++)
        if (!w->nodes[FIRST_SERVER + i].up && happens(w, thousandths))
            server_start(w, i);
}

static void add_server(struct world *w) {
    if (w->server_count < SERVERS)
        server_start(w, w->server_count++);
}

static void drain_server(struct world *w) {
    uint32_t slot = drawn(w, w->server_count);
    struct packet packet = {.kind = PACKET_DRAIN, .from = NODES - 1};
    packet.member.slot = slot;
    for (uint32_t i = 0; i < w->controller_count; i++) {
        packet.to = (uint8_t)i;
        packet_send(w, &packet);
    }
    trace(w, "server %u is to be drained", slot);
}

// --- the network --------------------------------------------------------------------------

static void cut_link(struct world *w, bool both) {
    uint32_t a = drawn(w, FIRST_CLIENT), b = drawn(w, FIRST_CLIENT);
    w->cut[a][b] = true;
    w->cut[b][a] |= both;
    trace(w, "cut: %u %s %u", a, both ? "<->" : "->", b);
}

static void isolate_node(struct world *w) {
    uint32_t a = drawn(w, FIRST_CLIENT), way = drawn(w, 3);
    for (uint32_t b = 0; b < NODES; b++) {
        w->cut[a][b] |= b != a && way != 0;
        w->cut[b][a] |= b != a && way != 1;
    }
    trace(w, "cut off: %u, way %u", a, way);
}

// A server from the controllers, or from all other servers.
static void cut_plane(struct world *w) {
    uint32_t a = FIRST_SERVER + drawn(w, w->server_count);
    bool servers = happens(w, 500), one_way = happens(w, 300);
    uint32_t first = servers ? FIRST_SERVER : 0, last = servers ? FIRST_CLIENT : FIRST_SERVER;
    for (uint32_t b = first; b < last; b++) {
        w->cut[a][b] |= b != a;
        w->cut[b][a] |= b != a && !one_way;
    }
    trace(w, "cut: %u from %u..%u", a, first, last - 1);
}

static void mend_links(struct world *w) {
    memset(w->cut, 0, sizeof w->cut);
    trace(w, "all links are whole");
}

// --- time ---------------------------------------------------------------------------------

static void go_wrong(struct world *w) {
    uint32_t what = drawn(w, w->stored ? 18 : 14);
    if (w->now < w->calm_until && what >= 4 && what <= 9)
        return;
    switch (what) {
    case 0:
    case 1:
    case 2:
        crash_server(w);
        break;
    case 3:
        crash_controller(w);
        break;
    case 4:
    case 5:
        pause_node(w);
        break;
    case 6:
    case 7:
        cut_link(w, drawn(w, 2));
        break;
    case 8:
        isolate_node(w);
        break;
    case 9:
        cut_plane(w);
        break;
    case 10:
    case 11:
        mend_links(w);
        break;
    case 12:
        add_server(w);
        break;
    case 13:
        drain_server(w);
        break;
    case 14:
        cut_power(w);
        break;
    default:
        store_break(w, drawn(w, w->server_count));
    }
}

// "progress returns once a majority and one copy of each bucket can talk": servers that are down
// stay so in half of the schedules.
static void heal(struct world *w) {
    trace(w, "healed");
    w->healed = true;
    w->heal_at = w->now;
    w->loss = w->twice = w->slow = 0;
    mend_links(w);
    stores_mend(w, true);
    for (uint32_t i = 0; i < NODES; i++)
        if (w->nodes[i].paused > w->now)
            w->nodes[i].paused = w->now;
    for (uint32_t i = 0; i < w->controller_count; i++)
        if (!w->nodes[i].up)
            controller_start(w, i);
    restart_some(w, happens(w, 500) || !all_held(w) ? 1000 : 0);
}

void faults_step(struct world *w) {
    w->faults_at = w->now + STEP;
    check_reach(w);
    if (w->healed)
        return;
    if (w->now >= w->heal_at) {
        heal(w);
        return;
    }
    stores_mend(w, false);
    restart_some(w, 100);
    if (happens(w, w->rate))
        go_wrong(w);
}
