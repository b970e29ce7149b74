// Time, packets and the network of the simulated cluster.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim.h"

bool happens(struct world *w, uint32_t thousandths) {
    return thousandths > 0 && random_below(&w->random, 1000) < thousandths;
}

uint32_t drawn(struct world *w, uint32_t below) {
    return random_below(&w->random, below);
}

void trace(const struct world *w, const char *format, ...) {
    if (!w->trace)
        return;
    va_list args;
    va_start(args, format);
    printf("%6llu  ", (unsigned long long)w->now);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

// --- loads --------------------------------------------------------------------------------

void load_hold(void *self, struct replica_load *load) {
    (void)self;
    load->references++;
}

void load_release(void *self, struct replica_load *load) {
    const struct server *server = self;
    if (load->references == 0)
        fault(server->world, "a load is released twice");
    else
        load->references--;
}

static struct replica_load *packet_load(const struct packet *packet) {
    return packet->kind == PACKET_REPLICA ? packet->replica.load : NULL;
}

// --- the queue ----------------------------------------------------------------------------

static bool is_before(const struct event *a, const struct event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_push(struct world *w, struct event event) {
    uint32_t i = w->heap_size++;
    while (i > 0 && is_before(&event, &w->heap[(i - 1) / 2])) {
        w->heap[i] = w->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    w->heap[i] = event;
}

static struct event heap_pop(struct world *w) {
    struct event first = w->heap[0], last = w->heap[--w->heap_size];
    uint32_t i = 0, child;
    while ((child = 2 * i + 1) < w->heap_size) {
        if (child + 1 < w->heap_size && is_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!is_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return first;
}

void packet_post(struct world *w, const struct packet *packet, uint64_t delay) {
    if (w->free_packet_count == 0)
        return;
    uint16_t index = w->free_packets[--w->free_packet_count];
    w->packets[index] = *packet;
    if (packet_load(packet))
        packet_load(packet)->references++;
    heap_push(w, (struct event){w->now + delay, w->order++, index});
}

// Timers and disks always have room.
int packet_send(struct world *w, const struct packet *packet) {
    int copies = 1 + happens(w, w->twice), sent = 0;
    bool cut = w->cut[packet->from][packet->to];
    for (int i = 0; i < copies; i++) {
        uint64_t delay = 1 + drawn(w, 6);
        if (happens(w, w->slow))
            delay += drawn(w, w->slowness);
        if (cut || happens(w, w->loss) || w->free_packet_count < 4 * NODES)
            continue;
        packet_post(w, packet, delay);
        sent++;
    }
    return sent;
}

// --- a schedule ---------------------------------------------------------------------------

static void deliver(struct world *w, struct packet *packet) {
    uint32_t to = packet->to;
    if (packet->kind == PACKET_PAXOS)
        packet->paxos.message.state.at = (const uint8_t *)&packet->paxos.state;
    if (packet->kind == PACKET_HEART)
        w->nodes[packet->from].beat[to] = w->now;
    if (to < FIRST_SERVER)
        controller_receive(w, to, packet);
    else if (to < FIRST_CLIENT)
        server_receive(w, to - FIRST_SERVER, packet);
    else
        client_receive(w, to - FIRST_CLIENT, packet);
}

static void step(struct world *w) {
    struct event event = heap_pop(w);
    struct packet *packet = &w->packets[event.packet];
    const struct node *node = &w->nodes[packet->to];
    w->now = event.at;
    w->events++;
    if (node->paused > w->now) { // it finds them all when it goes on
        event.at = node->paused + drawn(w, 3);
        heap_push(w, event);
        return;
    }
    deliver(w, packet);
    if (packet_load(packet))
        packet_load(packet)->references--;
    w->free_packets[w->free_packet_count++] = event.packet;
}

static void begin_timers(struct world *w) {
    for (uint32_t i = 0; i < NODES; i++) {
        const struct packet timer = {.kind = PACKET_TIMER, .from = (uint8_t)i, .to = (uint8_t)i};
        packet_post(w, &timer, 1 + drawn(w, TICK));
    }
}

static void begin(struct world *w, uint64_t seed, bool traced) {
    uint64_t run = w->run + 1;
    memset(w, 0, offsetof(struct world, packets));
    memset(w->cut, 0, offsetof(struct world, stamps) - offsetof(struct world, cut));
    memset(w->committer, 0, sizeof *w - offsetof(struct world, committer));
    w->seed = seed;
    w->run = run;
    w->trace = traced;
    w->random = random_stream(seed, 0, 0);
    w->heap_size = w->order = w->next_load = 0;
    memset(w->loads, 0, sizeof w->loads);
    w->free_packet_count = PACKETS;
    for (uint32_t i = 0; i < PACKETS; i++)
        w->free_packets[i] = (uint16_t)i;
}

static void end(struct world *w) {
    for (uint32_t i = 0; i < CONTROLLERS; i++)
        paxos_close(w->controllers[i].paxos);
    for (uint32_t i = 0; i < SERVERS; i++)
        replica_close(w->servers[i].replica), persist_close(w->stores[i].persist),
            sim_end(&w->stores[i].disk);
    while (w->heap_size > 0) {
        struct event event = heap_pop(w);
        if (packet_load(&w->packets[event.packet]))
            packet_load(&w->packets[event.packet])->references--;
    }
    for (uint32_t i = 0; i < LOADS; i++)
        if (w->loads[i].references > 0)
            fault(w, "a load is never released");
}

bool world_run(struct world *w, uint64_t seed, bool traced) {
    begin(w, seed, traced);
    faults_begin(w);
    begin_timers(w);
    while (!*w->fault) {
        if (w->now >= w->faults_at)
            faults_step(w);
        if (w->healed && is_quiet(w))
            break;
        if (w->healed && w->now > w->heal_at + HEALED)
            fault(w, "no progress after all is healed");
        step(w);
    }
    if (!*w->fault)
        check_end(w);
    end(w);
    return !*w->fault;
}
