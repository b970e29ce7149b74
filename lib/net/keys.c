#include "net/keys.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform_util.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "net/secrets.h"
#include "store/output.h"

enum { PATH_ROOM = 4096, PEM_ROOM = 4096, NAME_ROOM = 64, TIME_ROOM = 16, SERIAL_BYTES = 16 };

struct authority {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key;
    mbedtls_x509_crt certificate;
};

static int crypto_failed(const char *what, int code, struct error *err) {
    char text[128];
    mbedtls_strerror(code, text, sizeof text);
    return error_set(err, STATUS_DATA, "%s: %s", what, text);
}

static int make_key(struct authority *ca, mbedtls_pk_context *key, struct error *err) {
    int code = mbedtls_pk_setup(key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY));
    if (!code)
        code = mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(*key),
                                   mbedtls_ctr_drbg_random, &ca->random);
    return code ? crypto_failed("making a key", code, err) : STATUS_OK;
}

// From yesterday, for clocks that are not quite right.
static void set_validity(char from[TIME_ROOM], char to[TIME_ROOM], int days) {
    const time_t day = 24 * 60 * 60, now = time(NULL), first = now - day, last = now + days * day;
    struct tm date;
    strftime(from, TIME_ROOM, "%Y%m%d%H%M%S", gmtime_r(&first, &date));
    strftime(to, TIME_ROOM, "%Y%m%d%H%M%S", gmtime_r(&last, &date));
}

static int set_serial(struct authority *ca, mbedtls_x509write_cert *certificate) {
    mbedtls_mpi serial;
    mbedtls_mpi_init(&serial);
    int code = mbedtls_mpi_fill_random(&serial, SERIAL_BYTES, mbedtls_ctr_drbg_random, &ca->random);
    if (!code)
        code = mbedtls_x509write_crt_set_serial(certificate, &serial);
    mbedtls_mpi_free(&serial);
    return code;
}

static int describe_certificate(struct authority *ca, mbedtls_x509write_cert *certificate,
                                bool is_ca, int days) {
    char from[TIME_ROOM], to[TIME_ROOM];
    const unsigned usage = is_ca
                               ? MBEDTLS_X509_KU_KEY_CERT_SIGN
                               : MBEDTLS_X509_KU_DIGITAL_SIGNATURE | MBEDTLS_X509_KU_KEY_AGREEMENT;
    set_validity(from, to, days);
    mbedtls_x509write_crt_set_version(certificate, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(certificate, MBEDTLS_MD_SHA256);
    int code = set_serial(ca, certificate);
    if (!code)
        code = mbedtls_x509write_crt_set_issuer_name(certificate, "CN=" SECRETS_NAME " CA");
    if (!code)
        code = mbedtls_x509write_crt_set_subject_name(certificate, is_ca ? "CN=" SECRETS_NAME " CA"
                                                                         : "CN=" SECRETS_NAME);
    if (!code)
        code = mbedtls_x509write_crt_set_validity(certificate, from, to);
    if (!code)
        code = mbedtls_x509write_crt_set_basic_constraints(certificate, is_ca, is_ca ? 0 : -1);
    if (!code)
        code = mbedtls_x509write_crt_set_key_usage(certificate, usage);
    return code;
}

// The certificate of `key`, signed by the authority, as PEM.
static int sign_certificate(struct authority *ca, mbedtls_pk_context *key, bool is_ca, int days,
                            char pem[PEM_ROOM], struct error *err) {
    mbedtls_x509write_cert certificate;
    mbedtls_x509write_crt_init(&certificate);
    mbedtls_x509write_crt_set_subject_key(&certificate, key);
    mbedtls_x509write_crt_set_issuer_key(&certificate, &ca->key);
    int code = describe_certificate(ca, &certificate, is_ca, days);
    if (!code)
        code = mbedtls_x509write_crt_pem(&certificate, (unsigned char *)pem, PEM_ROOM,
                                         mbedtls_ctr_drbg_random, &ca->random);
    mbedtls_x509write_crt_free(&certificate);
    return code ? crypto_failed("making a certificate", code, err) : STATUS_OK;
}

// A new file, whole and on the disk, or none.
static int write_new(const char *path, const char *text, mode_t mode, struct error *err) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return error_errno(err, STATUS_CANTCREATE, "%s", path);
    size_t length = strlen(text);
    int status = STATUS_OK;
    errno = ENOSPC; // where only a part is written
    if (write(fd, text, length) != (ssize_t)length || fsync(fd))
        status = error_errno(err, STATUS_IO, "%s", path);
    if (close(fd) && !status)
        status = error_errno(err, STATUS_IO, "%s", path);
    if (status)
        unlink(path);
    return status;
}

static int key_path(char path[PATH_ROOM], const char *folder, const char *name, const char *suffix,
                    struct error *err) {
    if (snprintf(path, PATH_ROOM, "%s/%s%s", folder, name, suffix) < PATH_ROOM)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE, "the name of the folder of keys is too long");
}

// A certificate, if it is wanted, and the key behind it, in one file.
static int write_key(const char *path, const char *certificate, mbedtls_pk_context *key,
                     struct error *err) {
    char text[2 * PEM_ROOM] = "";
    size_t used = strlen(certificate);
    memcpy(text, certificate, used);
    int code = mbedtls_pk_write_key_pem(key, (unsigned char *)text + used, sizeof text - used);
    int status = code ? crypto_failed(path, code, err) : write_new(path, text, 0600, err);
    mbedtls_platform_zeroize(text, sizeof text);
    return status;
}

static int authority_make(struct authority *ca, const char *crt, const char *key, int days,
                          struct error *err) {
    char pem[PEM_ROOM];
    int status = make_key(ca, &ca->key, err);
    if (!status)
        status = sign_certificate(ca, &ca->key, true, days, pem, err);
    if (!status)
        status = write_key(key, "", &ca->key, err);
    if (status)
        return status;
    status = write_new(crt, pem, 0644, err);
    if (status)
        unlink(key); // alone it would be in the way of the next attempt
    return status;
}

// Its two files, of which machines of a run have one.
static int find_authority_file(const char *path, struct error *err) {
    const char *why = access(path, R_OK) ? strerror(errno) : NULL;
    return !why ? STATUS_OK
                : error_set(err, STATUS_NOINPUT,
                            "%s: %s; keys are made with ca.crt and ca.key, where the first were "
                            "made",
                            path, why);
}

static int authority_read(struct authority *ca, const char *crt, const char *key,
                          struct error *err) {
    int status = find_authority_file(crt, err);
    if (!status)
        status = find_authority_file(key, err);
    if (status)
        return status;
    int code = mbedtls_x509_crt_parse_file(&ca->certificate, crt);
    if (code)
        return crypto_failed(crt, code, err);
    if ((code = mbedtls_pk_parse_keyfile(&ca->key, key, NULL)))
        return crypto_failed(key, code, err);
    if ((code = mbedtls_pk_check_pair(&ca->certificate.pk, &ca->key)))
        return crypto_failed(key, code, err);
    return secrets_check_dates(crt, time(NULL), err); // what it signs would expire with it
}

static int authority_open(struct authority *ca, const char *folder, int days, struct error *err) {
    char crt[PATH_ROOM], key[PATH_ROOM];
    mbedtls_entropy_init(&ca->entropy);
    mbedtls_ctr_drbg_init(&ca->random);
    mbedtls_pk_init(&ca->key);
    mbedtls_x509_crt_init(&ca->certificate);
    int code = mbedtls_ctr_drbg_seed(&ca->random, mbedtls_entropy_func, &ca->entropy, NULL, 0);
    if (code)
        return crypto_failed("random numbers", code, err);
    if (key_path(crt, folder, "ca", ".crt", err) || key_path(key, folder, "ca", ".key", err))
        return STATUS_USAGE;
    if (access(crt, F_OK) && access(key, F_OK) && errno == ENOENT)
        return authority_make(ca, crt, key, days, err);
    return authority_read(ca, crt, key, err);
}

static void authority_close(struct authority *ca) {
    mbedtls_x509_crt_free(&ca->certificate);
    mbedtls_pk_free(&ca->key);
    mbedtls_ctr_drbg_free(&ca->random);
    mbedtls_entropy_free(&ca->entropy);
}

static int make_member_keys(struct authority *ca, const char *folder, const char *name, int days,
                            struct error *err) {
    char path[PATH_ROOM], pem[PEM_ROOM];
    mbedtls_pk_context key;
    mbedtls_pk_init(&key);
    int status = key_path(path, folder, name, ".pem", err);
    if (!status)
        status = make_key(ca, &key, err);
    if (!status)
        status = sign_certificate(ca, &key, false, days, pem, err);
    if (!status)
        status = write_key(path, pem, &key, err);
    mbedtls_pk_free(&key);
    return status;
}

static int check_name(const char *name, struct error *err) {
    size_t length = strlen(name);
    bool good = length > 0 && length < NAME_ROOM && *name != '.' && *name != '-';
    for (size_t i = 0; good && i < length; i++)
        good = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]);
    return good ? STATUS_OK : error_set(err, STATUS_USAGE, "'%s' is no name for a key", name);
}

// Whether a file of that name can be new, and is not made twice.
static int check_new(const char *folder, const char *const *names, size_t i, struct error *err) {
    char path[PATH_ROOM];
    struct stat there;
    for (size_t before = 0; before < i; before++)
        if (!strcmp(names[before], names[i]))
            return error_set(err, STATUS_USAGE, "'%s' is named twice", names[i]);
    int status = key_path(path, folder, names[i], ".pem", err);
    if (status || lstat(path, &there))
        return status;
    errno = EEXIST;
    return error_errno(err, STATUS_CANTCREATE, "%s", path);
}

int keys_make(const char *folder, const char *const *names, size_t count, int days,
              struct error *err) {
    int status = STATUS_OK;
    for (size_t i = 0; !status && i < count; i++)
        status = check_name(names[i], err);
    for (size_t i = 0; !status && i < count; i++)
        status = check_new(folder, names, i, err);
    if (!status && (days < 1 || days > 36500))
        status = error_set(err, STATUS_USAGE, "keys for %d days", days);
    if (!status)
        status = output_make_parents(folder, err);
    if (status)
        return status;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return error_errno(err, STATUS_CANTCREATE, "%s", folder);
    struct authority ca;
    status = authority_open(&ca, folder, days, err);
    for (size_t i = 0; !status && i < count; i++)
        status = make_member_keys(&ca, folder, names[i], days, err);
    authority_close(&ca);
    return status;
}
