// Numbers that lie on the disk (store/scratch.h).
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../helper/tap.h"
#include "core/error.h"
#include "core/mem.h"
#include "store/scratch.h"

enum { COUNT = 100000 };

static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; // "." and ".."
}

static void test_floats(struct tap *tap, const char *folder) {
    float *one, *other;
    CHECK_INT(tap, scratch_open(&one, folder, COUNT, NULL), STATUS_OK);
    CHECK_INT(tap, scratch_open(&other, folder, COUNT, NULL), STATUS_OK);
    CHECK_INT(tap, (uintptr_t)one % MEM_ALIGN, 0);
    CHECK_INT(tap, entries(folder), 0);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) {
        sum += fabs((double)one[i]);
        one[i] = (float)i;
        other[i] = -(float)i;
    }
    CHECK_NEAR(tap, sum, 0, 0);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += one[i] != (float)i || other[i] != -(float)i;
    CHECK_INT(tap, wrong, 0);
    scratch_free(one);
    scratch_free(other);
    scratch_free(NULL);
}

static void test_nowhere(struct tap *tap, const char *folder) {
    struct error err = {0};
    float *floats;
    CHECK_INT(tap, scratch_open(&floats, "no/such/folder", COUNT, &err), STATUS_CANTCREATE);
    CHECK(tap, strstr(err.text, "no/such/folder") != NULL);
    CHECK_INT(tap, scratch_open(&floats, folder, SIZE_MAX / 2, &err), STATUS_IO);
}

// A disk that is full is said when the file is made: a write to it would end the process.
static void test_no_room(struct tap *tap, const char *folder) {
    struct rlimit before, low;
    struct error err = {0};
    float *floats;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    low = before;
    low.rlim_cur = COUNT * sizeof(float) / 2;
    setrlimit(RLIMIT_FSIZE, &low);
    CHECK_INT(tap, scratch_open(&floats, folder, COUNT, &err), STATUS_IO);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(tap, strstr(err.text, "no room in ") != NULL);
    CHECK_INT(tap, entries(folder), 0);
}

int main(void) {
    struct tap tap = {0};
    char folder[] = "/tmp/adam-scratch-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    TEST(&tap, "floats are zeros at first, aligned, and in no file with a name",
         { test_floats(&tap, folder); });
    TEST(&tap, "a folder that is not there, and sizes that cannot be, are refused",
         { test_nowhere(&tap, folder); });
    TEST(&tap, "want of room on the disk is said at once", { test_no_room(&tap, folder); });
    rmdir(folder);
    return tap_done(&tap);
}
