// What a run's classes are called: data servers know it.
//
// Threads: waits for the network; not for handlers of links.
#ifndef ADAM_REMOTE_CLASS_NAMES_H
#define ADAM_REMOTE_CLASS_NAMES_H

#include "net/link.h"
#include "sample/sample.h"

struct error;

// Asks the data servers of the routes, one after the other, until one has answered: all
// have the same data set. Each has `timeout` milliseconds to welcome. Names are added to
// `names`, which is empty, in the order of their labels. STATUS_UNAVAILABLE when none
// answers, with the last one's reason; STATUS_DATA when two classes have one name.
int class_names_fetch(struct classes *names, const struct proto_routes *routes,
                      const struct proto_hello *hello, const struct link_options *options,
                      uint32_t timeout, struct error *err);

#endif
