// Gives bytes of a part of a checkpoint that is on a parameter server's own disk.
#ifndef ADAM_ROLE_PARAMSERVER_PART_READ_H
#define ADAM_ROLE_PARAMSERVER_PART_READ_H

#include "role/request_queue.h"

// Answers a read_part, or refuses it (storage failed). `folder` is that for parts, NULL: there is
// none; `name` that of the server, for people.
void part_read(const char *folder, const char *name, const struct queued_request *queued);

#endif
