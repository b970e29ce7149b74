// Processors for threads that are measured together. Where two begin on one of them it takes
// some 10 ms until the kernel has moved one: a tenth of a short turn, and nothing of a run.
#ifndef ADAM_TESTS_BENCH_SEATS_H
#define ADAM_TESTS_BENCH_SEATS_H

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

// Those that this process may run on, `most` of them at most; returns how many.
static inline int seats_allowed(int *processors, int most) {
    cpu_set_t allowed;
    int count = 0;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int i = 0; i < CPU_SETSIZE && count < most; i++)
        if (CPU_ISSET(i, &allowed))
            processors[count++] = i;
    return count;
}

// The thread that calls goes to this one, and stays.
static inline void seats_take(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// All other threads of this process go to the processors behind the first, one after the other.
static inline void seats_give_others(const int *processors, int count) {
    DIR *tasks = opendir("/proc/self/task");
    int next = 1;
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        pid_t task = (pid_t)atoi(entry->d_name);
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processors[next % count], &set);
        if (task > 0 && task != gettid() && !sched_setaffinity(task, sizeof set, &set))
            next++;
    }
    if (tasks)
        closedir(tasks);
}

#endif
