// What TLS needs of one side: the certificate of the authority, and the side's own
// certificate and key. Both sides show theirs, and each checks the other's.
//
// A folder of keys (adam-ctl keys) has ca.crt and NAME.pem, which is certificate and key;
// nobody but its owner may read the latter.
#ifndef ADAM_NET_SECRETS_H
#define ADAM_NET_SECRETS_H

#include "core/error.h"

// The name in every certificate that we make. Who dials insists on it: nng checks
// nothing at all without a name.
#define SECRETS_NAME "adam"

struct secrets;

// Reads `folder`/ca.crt and `folder`/NAME.pem and tries them. STATUS_NOINPUT when one
// cannot be read, STATUS_DATA when it is not what it should be, or is readable by others.
int secrets_open(struct secrets **secrets, const char *folder, const char *name, struct error *err);
void secrets_close(struct secrets *secrets);

#endif
