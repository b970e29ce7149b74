// Whether the certificate of a folder of keys is of the authority beside it.
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "core/error.h"
#include "net/secrets.h"

static int read_failed(const char *path, const char *what, int code, struct error *err) {
    char text[128];
    mbedtls_strerror(code, text, sizeof text);
    return error_set(err, STATUS_DATA, "%s: not a %s: %s", path, what, text);
}

static int parse_certificate(mbedtls_x509_crt *certificate, const char *path, const char *pem,
                             struct error *err) {
    int code =
        pem ? mbedtls_x509_crt_parse(certificate, (const unsigned char *)pem, strlen(pem) + 1)
            : mbedtls_x509_crt_parse_file(certificate, path);
    return code ? read_failed(path, "certificate", code, err) : STATUS_OK;
}

// The dates of both are checked, and told, by themselves.
static int verify_pair(mbedtls_x509_crt *own, mbedtls_x509_crt *ca, const char *own_path,
                       const char *ca_path, struct error *err) {
    const uint32_t dates = MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE;
    uint32_t flags = 0;
    int code = mbedtls_x509_crt_verify(own, ca, NULL, SECRETS_NAME, &flags, NULL, NULL);
    if (code && code != MBEDTLS_ERR_X509_CERT_VERIFY_FAILED)
        return read_failed(own_path, "certificate that can be checked", code, err);
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
        return error_set(err, STATUS_DATA,
                         "%s: this certificate is not signed by %s: copy the ca.crt that it was "
                         "made with, or make new keys with adam-ctl keys",
                         own_path, ca_path);
    if (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH)
        return error_set(err, STATUS_DATA,
                         "%s: this certificate is not for the name '%s': make new keys with "
                         "adam-ctl keys",
                         own_path, SECRETS_NAME);
    if (flags & ~dates)
        return error_set(err, STATUS_DATA, "%s: others will refuse this certificate", own_path);
    return STATUS_OK;
}

int secrets_check_signer(const char *own_path, const char *own_pem, const char *ca_path,
                         const char *ca_pem, struct error *err) {
    mbedtls_x509_crt own, ca;
    mbedtls_x509_crt_init(&own);
    mbedtls_x509_crt_init(&ca);
    int status = parse_certificate(&own, own_path, own_pem, err);
    if (!status)
        status = parse_certificate(&ca, ca_path, ca_pem, err);
    if (!status)
        status = verify_pair(&own, &ca, own_path, ca_path, err);
    mbedtls_x509_crt_free(&own);
    mbedtls_x509_crt_free(&ca);
    return status;
}

int secrets_check_pair(const char *path, struct error *err) {
    mbedtls_x509_crt certificate;
    mbedtls_pk_context key;
    mbedtls_x509_crt_init(&certificate);
    mbedtls_pk_init(&key);
    int status = parse_certificate(&certificate, path, NULL, err);
    int code = status ? 0 : mbedtls_pk_parse_keyfile(&key, path, NULL);
    if (code)
        status = read_failed(path, "key", code, err);
    if (!status && mbedtls_pk_check_pair(&certificate.pk, &key))
        status = error_set(err, STATUS_DATA, "%s: its key is not that of its certificate", path);
    mbedtls_pk_free(&key);
    mbedtls_x509_crt_free(&certificate);
    return status;
}
