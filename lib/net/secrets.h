// What TLS needs of one side: the certificate of the authority, and the side's own
// certificate and key. Both sides show theirs, and each checks the other's.
//
// A folder of keys (adam-ctl keys) has ca.crt and NAME.pem, which is certificate and key;
// nobody but its owner may read the latter.
#ifndef ADAM_NET_SECRETS_H
#define ADAM_NET_SECRETS_H

#include <stdint.h>

struct error;

// The name in every certificate that we make. Who dials insists on it: nng checks
// nothing at all without a name.
#define SECRETS_NAME "adam"

struct secrets;

// Reads `folder`/ca.crt and `folder`/NAME.pem and tries them. STATUS_NOINPUT when one
// cannot be read, STATUS_DATA when it is not what it should be, is readable by others, has
// expired or is not valid yet, or when ca.crt has not signed NAME.pem.
int secrets_open(struct secrets **secrets, const char *folder, const char *name, struct error *err);
void secrets_close(struct secrets *secrets);

// The first certificate of a file counts from one moment to another, in seconds since 1970.
struct secrets_dates {
    int64_t from, to;
};
// `pem`, when it is not NULL, is the file's text. STATUS_DATA when that is no certificate.
int secrets_dates(const char *path, const char *pem, struct secrets_dates *dates,
                  struct error *err);
// STATUS_DATA, with the date, when it does not count at `now`; the file is read for the latter.
int secrets_in_time(const char *path, const struct secrets_dates *dates, int64_t now,
                    struct error *err);
int secrets_check_dates(const char *path, int64_t now, struct error *err);
// "2026-11-24 02:31 UTC"
enum { SECRETS_DATE = 48 };
void secrets_date_text(char text[SECRETS_DATE], int64_t date);

// Whether `ca_path` has signed the certificate `own_path`, for the name that others insist on.
// A PEM text that is not NULL is the file's. STATUS_DATA, and why: others would refuse it.
int secrets_check_signer(const char *own_path, const char *own_pem, const char *ca_path,
                         const char *ca_pem, struct error *err);
// Whether the file's key is that of its certificate. STATUS_DATA when it is not.
int secrets_check_pair(const char *path, struct error *err);

#endif
