#include "sample/files_met.h"

#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

int files_met_add(struct files_met *met, const struct stat *of, size_t link, struct error *err) {
    if (met->count == met->room) {
        size_t room = met->room ? 2 * met->room : 64;
        struct file_met *items = mem_resize(met->items, room, sizeof *items);
        if (!items)
            return error_nomem(err);
        met->items = items;
        met->room = room;
    }
    met->items[met->count++] = (struct file_met){of->st_dev, of->st_ino, link};
    return STATUS_OK;
}

static int difference(size_t a, size_t b) {
    return (a > b) - (a < b);
}

static int by_file(const void *a, const void *b) {
    const struct file_met *left = a, *right = b;
    if (left->device != right->device)
        return difference(left->device, right->device);
    if (left->inode != right->inode)
        return difference(left->inode, right->inode);
    return difference(left->link, right->link);
}

void files_met_again(struct files_met *met, bool *again) {
    if (met->count > 0)
        qsort(met->items, met->count, sizeof *met->items, by_file);
    for (size_t i = 1; i < met->count; i++) {
        const struct file_met *before = &met->items[i - 1], *item = &met->items[i];
        if (item->link > 0)
            again[item->link - 1] = item->device == before->device && item->inode == before->inode;
    }
}

void files_met_forget(struct files_met *met) {
    met->count = 0;
}

void files_met_free(struct files_met *met) {
    free(met->items);
    *met = (struct files_met){0};
}
