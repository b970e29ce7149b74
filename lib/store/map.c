#include "store/map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

int map_open(struct map *map, const char *path, struct error *err) {
    *map = (struct map){0};
    // A pipe is refused, not waited for.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_errno(err, STATUS_NOINPUT, "cannot open %s", path);
    struct stat stat_of;
    int status = STATUS_OK;
    if (fstat(fd, &stat_of) || !S_ISREG(stat_of.st_mode)) {
        status = error_set(err, STATUS_NOINPUT, "%s: is no plain file", path);
    } else if (stat_of.st_size > 0) {
        void *data = mmap(NULL, (size_t)stat_of.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = error_errno(err, STATUS_IO, "cannot map %s", path);
        else
            *map = (struct map){data, (size_t)stat_of.st_size};
    }
    close(fd);
    return status;
}

void map_close(struct map *map) {
    if (map->data)
        munmap((void *)map->data, map->size);
    *map = (struct map){0};
}
