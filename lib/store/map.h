// A file in memory, read only.
#ifndef ADAM_STORE_MAP_H
#define ADAM_STORE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct error;

struct map {
    const uint8_t *data;
    size_t size;
};

// STATUS_NOINPUT when it cannot be opened or is no plain file.
int map_open(struct map *map, const char *path, struct error *err);
void map_close(struct map *map);

#endif
