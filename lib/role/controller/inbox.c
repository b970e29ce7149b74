#include "role/controller/inbox.h"

#include <stdlib.h>

#include "core/mem.h"

enum { AGAIN = 100 }; // milliseconds after which one that was refused may ask again

void inbox_open(struct inbox *inbox, struct gate *gate) {
    *inbox = (struct inbox){.gate = gate};
    inbox->last = &inbox->first;
    pthread_mutex_init(&inbox->lock, NULL);
}

void letter_free(struct letter *letter) {
    link_drop(letter->link);
    kept_drop(letter->message);
    free(letter);
}

void inbox_close(struct inbox *inbox) {
    for (struct letter *letter; (letter = inbox_take(inbox));)
        letter_free(letter);
    pthread_mutex_destroy(&inbox->lock);
}

static bool append(struct inbox *inbox, struct letter *letter) {
    pthread_mutex_lock(&inbox->lock);
    bool room = inbox->count < INBOX_MOST;
    if (room) {
        *inbox->last = letter;
        inbox->last = &letter->next;
        inbox->count++;
    }
    pthread_mutex_unlock(&inbox->lock);
    return room;
}

void inbox_put(struct inbox *inbox, struct link *link, uint64_t request, uint16_t type,
               const union proto_message *message) {
    struct letter *letter = mem_zeroed(1, sizeof *letter);
    if (letter && kept_make(&letter->message, type, message, NULL) == STATUS_OK) {
        link_hold(link);
        letter->link = link;
        letter->request = request;
        letter->type = type;
        if (append(inbox, letter)) {
            gate_open(inbox->gate);
            return;
        }
        letter_free(letter);
        letter = NULL;
    }
    free(letter);
    link_refuse(link, request, PROTO_REFUSAL_BUSY, AGAIN, "");
}

void inbox_put_closed(struct inbox *inbox, struct link *link) {
    struct letter *letter = mem_zeroed(1, sizeof *letter);
    if (!letter)
        return;
    link_hold(link);
    letter->link = link;
    if (append(inbox, letter))
        gate_open(inbox->gate);
    else
        letter_free(letter);
}

struct letter *inbox_take(struct inbox *inbox) {
    pthread_mutex_lock(&inbox->lock);
    struct letter *letter = inbox->first;
    if (letter) {
        inbox->first = letter->next;
        inbox->count--;
        if (!inbox->first)
            inbox->last = &inbox->first;
    }
    pthread_mutex_unlock(&inbox->lock);
    return letter;
}
