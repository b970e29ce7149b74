#include "core/crew.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/error.h"
#include "core/mem.h"

int crew_work(int threads, void *(*work)(void *), void *self, struct error *err) {
    pthread_t *thread = mem_array((size_t)threads, sizeof *thread);
    int running = 0;
    if (!thread)
        return error_nomem(err);
    while (running < threads && !pthread_create(&thread[running], NULL, work, self))
        running++;
    for (int i = 0; i < running; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    return running > 0 ? STATUS_OK : error_set(err, STATUS_IO, "cannot start a thread");
}
