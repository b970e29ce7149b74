// Bodies of requests for predictions, as RFC 7578, RFC 4648 and adam-eval(1) have them.
#include <stdlib.h>

#include "../helper/tap.h"
#include "answer/body.h"
#include "core/error.h"

#define TYPE "multipart/form-data; boundary=XYZ"

static const struct body_limits limits = {.values = 4, .samples = 3};

// Checks the samples, as one text with a bar behind each.
static void check_body(struct tap *tap, const char *type, const char *data, const char *wanted) {
    struct body body;
    struct error err = {0};
    char got[256] = "";
    CHECK_INT(tap, body_read(&body, type, data, strlen(data), &limits, &err), STATUS_OK);
    if (err.status)
        FAIL(tap, "%s: %s", data, err.text);
    for (int i = 0; i < body.count; i++) {
        const struct body_sample *s = &body.samples[i];
        size_t used = strlen(got);
        if (s->floats)
            snprintf(got + used, sizeof got - used, "%g %g %g %g|", (double)s->floats[0],
                     (double)s->floats[1], (double)s->floats[2], (double)s->floats[3]);
        else
            snprintf(got + used, sizeof got - used, "%.*s|", (int)s->size, (const char *)s->bytes);
    }
    if (strcmp(got, wanted) != 0)
        FAIL(tap, "got '%s', not '%s'", got, wanted);
    body_free(&body);
}

static void check_refused(struct tap *tap, const char *type, const char *data, const char *why) {
    struct body body;
    struct error err = {0};
    CHECK_INT(tap, body_read(&body, type, data, strlen(data), &limits, &err), STATUS_DATA);
    if (!strstr(err.text, why))
        FAIL(tap, "'%s' is refused by '%s', not '%s'", data, err.text, why);
    CHECK(tap, !body.samples && body.count == 0);
}

int main(void) {
    struct tap tap = {0};
    TEST(&tap, "a body of any other type is one picture", {
        check_body(&tap, "image/png", "--XYZ\r\n", "--XYZ\r\n|");
        check_body(&tap, NULL, "{}", "{}|");
        check_body(&tap, "application/jsonx", "{}", "{}|");
    });
    TEST(&tap, "parts of a form are pictures, in their order", {
        check_body(&tap, TYPE, "--XYZ\r\nA: b\r\n\r\none\r\n--XYZ\r\n\r\ntwo\r\n--XYZ--\r\n",
                   "one|two|");
        check_body(&tap, "Multipart/Form-Data ; boundary=\"X Y\"; a=b",
                   "before\r\n--X Y \t\r\n\r\none\r\n--\r\n\r\n--X Y--after", "one\r\n--\r\n|");
        check_body(&tap, TYPE, "--XYZ\r\nA: b\r\n\r\n\r\n--XYZ\r\n\r\n--XY\r\n--XYZ--", "|--XY|");
    });
    TEST(&tap, "a form that is cut short, or has no end or boundary, is refused", {
        check_refused(&tap, TYPE, "--XYZ\r\n\r\none\r\n--XY", "within a part");
        check_refused(&tap, TYPE, "--XYZ\r\n\r\none\r\n--XYZ", "does not end");
        check_refused(&tap, TYPE, "--XYZ\r\nA: b\r\n", "headers of a part");
        check_refused(&tap, TYPE, "--XYZ--\r\n", "no picture");
        check_refused(&tap, TYPE, "one", "boundary is not in it");
        check_refused(&tap, "multipart/form-data", "--\r\n\r\none\r\n----", "without a boundary");
        check_refused(&tap,
                      TYPE "01234567890123456789012345678901234567890123456789012345678901234567",
                      "a", "without a boundary");
    });
    TEST(&tap, "instances are base64, or numbers nested at will", {
        check_body(
            &tap, "application/json; charset=utf-8",
            "{\"instances\": [{\"b64\": \"b25l\"}, [1, [2.5, [-3]], 4e2], {\"b64\": \"dHdv\\n\"}]}",
            "one|1 2.5 -3 400|two|");
        check_body(&tap, "application/json", "{\"instances\": [{\"b64\": \"b25lIQ==\"}]}", "one!|");
    });
    TEST(&tap, "what is none of these is named, with its place", {
        const char *type = "application/json";
        check_refused(&tap, type, "{\"instances\": [[1, 2, 3, 4], [1, 2, 3]]}",
                      "instance 1: 3 numbers, not the 4");
        check_refused(&tap, type, "{\"instances\": [[1, 2, 3, \"4\"]]}", "no number");
        check_refused(&tap, type, "{\"instances\": [{\"b64\": \"b2*5\"}]}", "instance 0: its text");
        check_refused(&tap, type, "{\"instances\": [{\"b46\": \"b25l\"}]}", "neither");
        check_refused(&tap, type, "{\"instances\": [3]}", "neither");
        check_refused(&tap, type, "{\"instances\": []}", "no picture");
        check_refused(&tap, type, "{\"instances\": [], \"more\": 1}", "not of the form");
        check_refused(&tap, type, "[]", "not of the form");
        check_refused(&tap, type, "{\"instances\": [", "line 1");
    });
    TEST(&tap, "more samples than the limit are refused", {
        check_refused(&tap, "application/json",
                      "{\"instances\": [[1,2,3,4], [1,2,3,4], [1,2,3,4], [1,2,3,4]]}",
                      "more than 3 samples");
    });
    TEST(&tap, "more values than memory is for are refused before they are parsed", {
        size_t size = 5000000;
        char *many = malloc(size + 1);
        memset(many, '[', size);
        many[size] = 0;
        check_refused(&tap, "application/json", many, "more than 4000000 values");
        for (size_t i = 0; i < 500000; i++)
            memcpy(many + 3 * i, i ? ",{}" : "[{}", 3);
        memcpy(many + 1500000, "]", 2);
        check_refused(&tap, "application/json", many, "more than 4000000 values");
        free(many);
    });
    TEST(&tap, "of nothing there is no picture in it, whatever its type, and no byte is looked at",
         {
             static const char *const types[] = {NULL, "application/json", TYPE};
             for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                 struct body body;
                 struct error err = {0};
                 CHECK_INT(&tap, body_read(&body, types[i], NULL, 0, &limits, &err), STATUS_DATA);
                 CHECK_TEXT(&tap, err.text, "there is no picture in it");
             }
         });
    return tap_done(&tap);
}
