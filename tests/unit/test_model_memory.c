// Every allocation that reading a model makes may fail: that is an error, not a
// crash, and nothing is lost.
#include <stdlib.h>

#include "../helper/heap.h"
#include "../helper/tap.h"
#include "core/error.h"
#include "model/model.h"
#include "model/table.h"

static const char text[] = "input 3x8x8 ops='scale 1/255'\n"
                           "conv a maps=4 kernel=1\n"
                           "conv b maps=6 kernel=3 pad=1 from=input\n"
                           "concat from=a,b\n"
                           "softmax units=2\n";

static int read_model(struct model **model, const char *written, struct error *err) {
    static const char *const sets[] = {"a.maps=5", "b.bias=0.1"};
    return model_parse(model, "t.net", written, sets, 2, err);
}

// Lets more and more allocations succeed until the text gets `wanted`; that each
// failure before is an I/O error. Returns how many failed.
static int fail_until(struct tap *tap, const char *written, int wanted) {
    long live = heap_live();
    for (int n = 0; n < 1000; n++) {
        struct model *model = (struct model *)&live; // whatever was there before
        struct error err = {0};
        heap_fail_after(n);
        int status = read_model(&model, written, &err);
        heap_fail_after(-1);
        if (status == wanted) {
            model_free(model);
            CHECK_INT(tap, heap_live(), live);
            return n;
        }
        CHECK_INT(tap, status, STATUS_IO);
        CHECK_TEXT(tap, err.text, "out of memory");
        CHECK(tap, model == NULL);
        CHECK_INT(tap, heap_live(), live);
    }
    return 0;
}

static void test_parse(struct tap *tap) {
    TEST(tap, "reading a model survives the failure of each allocation", {
        if (HEAP_FAILS)
            CHECK(tap, fail_until(tap, text, STATUS_OK) > 20);
    });
    TEST(tap, "so does refusing one", {
        if (HEAP_FAILS)
            CHECK(tap, fail_until(tap, "input 4\ncovn a maps=4\nconv b\n", STATUS_DATA) > 3);
    });
}

static void test_table(struct tap *tap) {
    TEST(tap, "so does the table of a model", {
        struct model *model;
        struct error err = {0};
        CHECK_INT(tap, read_model(&model, text, &err), STATUS_OK);
        long live = heap_live();
        char *table = NULL;
        for (int n = 0; HEAP_FAILS && !table && n < 100; n++) {
            heap_fail_after(n);
            table = table_text(model, 1, 1);
            heap_fail_after(-1);
            CHECK_INT(tap, heap_live() - live, table != NULL);
        }
        CHECK(tap, table || !HEAP_FAILS);
        free(table);
        json_t *json = NULL;
        for (int n = 0; HEAP_FAILS && !json && n < 1000; n++) {
            heap_fail_after(n);
            json = table_json(model, 1, 1);
            heap_fail_after(-1);
            CHECK(tap, json || heap_live() == live);
        }
        json_decref(json);
        CHECK_INT(tap, heap_live(), live);
        model_free(model);
    });
}

int main(void) {
    struct tap tap = {0};
    puts("# stdout has its buffer now");
    test_parse(&tap);
    test_table(&tap);
    return tap_done(&tap);
}
