#include "net/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/mem.h"
#include "net/secrets_internal.h"

enum { PATH_ROOM = 4096 };

static int check_readable(const char *path, bool private, struct error *err) {
    struct stat file;
    if (stat(path, &file) || access(path, R_OK))
        return error_errno(err, STATUS_NOINPUT, "%s", path);
    if (private && (file.st_mode & (S_IRWXG | S_IRWXO)))
        return error_set(err, STATUS_DATA, "%s: others may read this key; chmod 600 it", path);
    return STATUS_OK;
}

// One side's configuration. The name is that which the other side's certificate must have.
static int make_config(nng_tls_config **config, nng_tls_mode mode, const char *ca, const char *own,
                       struct error *err) {
    int code = nng_tls_config_alloc(config, mode);
    if (!code)
        code = nng_tls_config_version(*config, NNG_TLS_1_2, NNG_TLS_1_2);
    if (!code)
        code = nng_tls_config_auth_mode(*config, NNG_TLS_AUTH_MODE_REQUIRED);
    if (!code && mode == NNG_TLS_MODE_CLIENT)
        code = nng_tls_config_server_name(*config, SECRETS_NAME);
    if (code)
        return error_set(err, STATUS_BUG, "TLS: %s", nng_strerror(code));
    if ((code = nng_tls_config_ca_file(*config, ca)))
        return error_set(err, STATUS_DATA, "%s: not a certificate: %s", ca, nng_strerror(code));
    if ((code = nng_tls_config_cert_key_file(*config, own, NULL)))
        return error_set(err, STATUS_DATA, "%s: not a certificate and its key: %s", own,
                         nng_strerror(code));
    return STATUS_OK;
}

int secrets_open(struct secrets **secrets, const char *folder, const char *name,
                 struct error *err) {
    char ca[PATH_ROOM], own[PATH_ROOM];
    *secrets = NULL;
    if (snprintf(ca, sizeof ca, "%s/ca.crt", folder) >= PATH_ROOM ||
        snprintf(own, sizeof own, "%s/%s.pem", folder, name) >= PATH_ROOM)
        return error_set(err, STATUS_USAGE, "the name of the folder of keys is too long");
    struct secrets *s = mem_zeroed(1, sizeof *s);
    if (!s)
        return error_nomem(err);
    int status = check_readable(ca, false, err);
    if (!status)
        status = check_readable(own, true, err);
    if (!status)
        status = make_config(&s->server, NNG_TLS_MODE_SERVER, ca, own, err);
    if (!status)
        status = make_config(&s->client, NNG_TLS_MODE_CLIENT, ca, own, err);
    if (!status)
        status = secrets_check_dates(ca, time(NULL), err);
    if (!status)
        status = secrets_check_dates(own, time(NULL), err);
    if (!status)
        status = secrets_check_signer(own, NULL, ca, NULL, err);
    if (!status)
        status = secrets_check_pair(own, err);
    if (status)
        secrets_close(s);
    else
        *secrets = s;
    return status;
}

void secrets_close(struct secrets *secrets) {
    if (!secrets)
        return;
    if (secrets->server)
        nng_tls_config_free(secrets->server);
    if (secrets->client)
        nng_tls_config_free(secrets->client);
    free(secrets);
}
