// The state of a run that controllers agree on and keep: what is believed of its members,
// routes and texts is written the same again, and has a server for every bucket or none.
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "core/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void examine(const struct cluster *cluster) {
    struct cluster again;
    struct error err = {0};
    static struct proto_bucket buckets[CLUSTER_BUCKETS];
    size_t count = cluster_buckets(cluster, buckets);
    if (count != 0 && count != CLUSTER_BUCKETS)
        abort();
    cluster_lost(cluster);
    char *text = cluster_write(cluster);
    if (!text || cluster_read(&again, text, strlen(text), &err))
        abort();
    char *same = cluster_write(&again);
    if (!same || strcmp(same, text) != 0)
        abort();
    free(same), free(text);
    cluster_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cluster cluster;
    struct error err = {0};
    int status = cluster_read(&cluster, (const char *)data, size, &err);
    if (status && !*err.text)
        abort();
    if (!status)
        examine(&cluster);
    cluster_free(&cluster);
    return 0;
}
