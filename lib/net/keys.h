// Makes what TLS needs: an authority of one's own, and certificates that it signed.
#ifndef ADAM_NET_KEYS_H
#define ADAM_NET_KEYS_H

#include <stdbool.h>
#include <stddef.h>

struct error;

// In `folder`, which is made if need be: ca.crt and ca.key unless they are there, then
// NAME.pem for each name, valid for so many days. Keys are of P-256 and readable by their
// owner only. Nothing is ever overwritten: STATUS_CANTCREATE when a NAME.pem is there, or
// cannot be made; STATUS_DATA when ca.crt or ca.key is not what it should be, or has expired;
// STATUS_USAGE for a name that is none: letters, digits, '-', '_' and '.', not at the beginning.
int keys_make(const char *folder, const char *const *names, size_t count, int days,
              struct error *err);

#endif
