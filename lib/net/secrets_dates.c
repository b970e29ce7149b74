// When the certificates of a folder of keys count.
#include <mbedtls/error.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/error.h"
#include "net/secrets.h"

static int64_t seconds_of(const mbedtls_x509_time *date) {
    struct tm parts = {
        .tm_year = date->year - 1900,
        .tm_mon = date->mon - 1,
        .tm_mday = date->day,
        .tm_hour = date->hour,
        .tm_min = date->min,
        .tm_sec = date->sec,
    };
    return timegm(&parts);
}

int secrets_dates(const char *path, const char *pem, struct secrets_dates *dates,
                  struct error *err) {
    mbedtls_x509_crt certificate;
    mbedtls_x509_crt_init(&certificate);
    int code =
        pem ? mbedtls_x509_crt_parse(&certificate, (const unsigned char *)pem, strlen(pem) + 1)
            : mbedtls_x509_crt_parse_file(&certificate, path);
    if (!code)
        *dates = (struct secrets_dates){
            .from = seconds_of(&certificate.valid_from),
            .to = seconds_of(&certificate.valid_to),
        };
    mbedtls_x509_crt_free(&certificate);
    if (!code)
        return STATUS_OK;
    char text[128];
    mbedtls_strerror(code, text, sizeof text);
    return error_set(err, STATUS_DATA, "%s: not a certificate: %s", path, text);
}

void secrets_date_text(char text[SECRETS_DATE], int64_t date) {
    struct tm parts;
    time_t seconds = date;
    if (!gmtime_r(&seconds, &parts) || !strftime(text, SECRETS_DATE, "%Y-%m-%d %H:%M UTC", &parts))
        snprintf(text, SECRETS_DATE, "?");
}

int secrets_in_time(const char *path, const struct secrets_dates *dates, int64_t now,
                    struct error *err) {
    char clock[SECRETS_DATE], date[SECRETS_DATE];
    if (now >= dates->from && now <= dates->to)
        return STATUS_OK;
    secrets_date_text(clock, now);
    secrets_date_text(date, now > dates->to ? dates->to : dates->from);
    return error_set(err, STATUS_DATA,
                     now > dates->to
                         ? "%s: this certificate expired on %s, and the clock says %s; "
                           "make new keys with adam-ctl keys"
                         : "%s: this certificate is not valid before %s, and the clock "
                           "says %s; set the clock, or make new keys with adam-ctl keys",
                     path, date, clock);
}

int secrets_check_dates(const char *path, int64_t now, struct error *err) {
    struct secrets_dates dates;
    int status = secrets_dates(path, NULL, &dates, err);
    return status ? status : secrets_in_time(path, &dates, now, err);
}
