#!/usr/bin/env bats
# libadam as a user has it: installed into a folder, found by pkg-config, compared with adam-eval.
load ../helper/common
load ../helper/run
load ../helper/examples

setup_file() {
    if [ -n "${SAN:-}" ]; then return; fi
    small_run "$BATS_FILE_TMPDIR" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
    make -s -C "$ROOT" install DESTDIR="$BATS_FILE_TMPDIR/dest" PREFIX=/usr/local \
        BUILD="${BUILD#"$ROOT/"}"
}

setup() {
    if [ -n "${SAN:-}" ]; then skip "only the plain build is installed"; fi
    need pkg-config
    cd "$BATS_TEST_TMPDIR"
    model=$BATS_FILE_TMPDIR/run
    picture=$BATS_FILE_TMPDIR/pictures/4/000004.png
    lib=$BATS_FILE_TMPDIR/dest/usr/local/lib
    export PKG_CONFIG_SYSROOT_DIR=$BATS_FILE_TMPDIR/dest PKG_CONFIG_LIBDIR=$lib/pkgconfig
    export LD_LIBRARY_PATH=$lib
}

# The example of adam(3), as a reader copies it.
example() {
    page_text "$ROOT/man/adam.3" | awk '/^[A-Z]/ { on = $1 == "EXAMPLES" } on && /^           |^$/ { print substr($0, 12) }'
}

# Functions that the header declares, one a line.
declared() {
    sed -nE '/ADAM_PUBLIC [^_]/s/.*[ *](adam_[a-z_]+)\(.*/\1/p' "$lib/../include/adam.h" | sort
}

# compile PROGRAM FLAG...: FILE.c of the same name, with what pkg-config says.
compile() {
    # shellcheck disable=SC2046 # words of flags
    gcc -std=c11 -g -Wall -Wextra -Werror "$1.c" -o "$1" "${@:2}" $(pkg-config --cflags --libs adam)
}

# The scores of all classes of the picture, as adam-eval has them: CLASS<TAB>SCORE.
wanted() {
    adam-eval --model "$model" --data "$picture" --top 10 --json -q |
        jq -r '.top | sort_by(.class)[] | [.class, .score] | @tsv'
}

# Compares numbers, not how they are written.
same_scores() {
    python - "$1" "$2" <<'END'
import sys
a, b = ([(name, float(score)) for name, score in map(str.split, open(file))] for file in sys.argv[1:])
assert len(a) == 10 and a == b, (a, b)
END
}

@test "both libraries export what adam.h declares, and nothing else" {
    declared >declared
    [ "$(wc -l <declared)" -eq 7 ]
    nm -D --defined-only "$lib/libadam.so" | awk '{ print $NF }' | sort | diff declared -
    nm -g --defined-only "$lib/libadam.a" | awk 'NF == 3 { print $NF }' | sort | diff declared -
}

@test "adam(3) names each function, and the header is C of any year" {
    local name
    for name in $(declared); do grep -qxF ".Nm $name ," "$ROOT/man/adam.3" || grep -qxF ".Nm $name" "$ROOT/man/adam.3"; done
    for year in c99 c11 c17; do
        gcc -std=$year -pedantic -Wall -Wextra -Werror -fsyntax-only -x c "$lib/../include/adam.h"
    done
}

@test "a program finds the library by its soname" {
    readelf -d "$lib/libadam.so" >dynamic
    grep -q 'SONAME.*\[libadam\.so\.0\]' dynamic
    [ "$(readlink "$lib/libadam.so.0")" = "$(readlink "$lib/libadam.so")" ]
    # Nothing of the network, or of what only other programs need.
    run grep -E 'NEEDED.*(nng|mbed|protobuf|microhttpd)' dynamic
    [ "$status" -eq 1 ]
}

@test "the example of adam(3) predicts what adam-eval does, and is clean under a sanitizer" {
    example >predict.c
    compile predict -fsanitize=address,undefined -fno-sanitize-recover=all
    run_ok ./predict "$model" "$picture"
    printf '%s\n' "$output" >got
    wanted >wanted
    same_scores got wanted
}

@test "so does it with the static library alone" {
    example >predict.c
    # shellcheck disable=SC2046 # words of flags
    gcc predict.c -o predict $(pkg-config --static --cflags --libs adam | sed 's/-ladam\b/-l:libadam.a/')
    unset LD_LIBRARY_PATH
    ./predict "$model" "$picture" >got
    wanted >wanted
    same_scores got wanted
}

@test "what is wrong with a model or a picture is a message, for the program to print" {
    example >predict.c
    compile predict -fsanitize=address,undefined -fno-sanitize-recover=all
    run_status 1 ./predict nowhere "$picture"
    [[ $stderr == "nowhere: cannot open nowhere"*"No such file"* ]]
    head -c 100 "$picture" >cut.png
    run_status 1 ./predict "$model" cut.png
    [[ $stderr == "cut.png: "*"PNG"* ]]
    adam-prep "$picture" --ops 'resize 20x20' --to pnm -o - >small.pgm
    run_status 1 ./predict "$model" small.pgm
    [[ $stderr == "small.pgm: the picture is 1x20x20 "*"the model reads 1x28x28"* ]]
    [ -z "$output" ]
}

@test "ready floats, many in a call and on many threads, have the scores of pictures" {
    cat >floats.c <<'END'
#include <adam.h>
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 70, VALUES = 28 * 28, CLASSES = 10 };

static struct adam_model *model;
static unsigned char pgm[13 + VALUES + 1];
static float values[COUNT][VALUES];

static void *predict(void *arg) {
    float (*scores)[CLASSES] = malloc(COUNT * sizeof *scores), one[CLASSES];
    struct adam_error error;
    for (int round = 0; round < 5; round++) {
        assert(adam_predict(model, pgm, sizeof pgm - 1, one, NULL) == ADAM_OK);
        assert(adam_predict_floats(model, values[0], COUNT, scores[0], &error) == ADAM_OK);
        assert(error.status == ADAM_OK);
        for (int i = 0; i < COUNT; i++)
            for (int c = 0; c < CLASSES; c++)
                assert(fabsf(scores[i][c] - one[c]) <= 1e-6f);
        assert(adam_predict(model, pgm, 20, one, NULL) == ADAM_DATA);
    }
    free(scores);
    return arg;
}

int main(int argc, char **argv) {
    int channels, height, width;
    pthread_t threads[4];
    assert(argc == 3 && adam_open(&model, argv[1], NULL) == ADAM_OK);
    adam_input(model, &channels, &height, &width);
    assert(channels == 1 && height == 28 && width == 28 && adam_classes(model) == CLASSES);
    assert(!strcmp(adam_class(model, 0), "0") && !strcmp(adam_class(model, 9), "9"));
    FILE *file = fopen(argv[2], "rb");
    assert(fread(pgm, 1, sizeof pgm, file) == sizeof pgm - 1);
    fclose(file);
    for (int i = 0; i < COUNT; i++)
        for (int v = 0; v < VALUES; v++)
            values[i][v] = ((float)pgm[13 + v] / 255 - 0.16f) / 0.24f;
    for (int t = 0; t < 4; t++)
        assert(!pthread_create(&threads[t], NULL, predict, NULL));
    for (int t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    adam_close(model);
    adam_close(NULL);
    return 0;
}
END
    adam-prep "$picture" --to pnm -o - >picture.pgm
    [ "$(head -c 13 picture.pgm)" = "$(printf 'P5\n28 28\n255')" ]
    compile floats -fsanitize=address,undefined -fno-sanitize-recover=all -pthread -lm
    run_ok ./floats "$model" picture.pgm
}

@test "a program whose locale writes numbers with a comma has the same scores, and its commas" {
    command -v localedef >/dev/null || skip "no localedef here"
    mkdir locales
    localedef -i de_DE -f UTF-8 --no-archive locales/de_DE.UTF-8 || skip "no sources of locales here"
    cat >comma.c <<'END'
#include <adam.h>
#include <assert.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_comma(void) {
    char text[8];
    snprintf(text, sizeof text, "%.1f", 0.5);
    assert(!strcmp(text, "0,5"));
}

int main(int argc, char **argv) {
    static char bytes[1 << 16];
    static float values[28 * 28], scores[10];
    struct adam_model *model;
    struct adam_error error;
    assert(argc == 3 && setlocale(LC_ALL, ""));
    check_comma();
    if (adam_open(&model, argv[1], &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    check_comma();
    FILE *file = fopen(argv[2], "rb");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert(adam_predict(model, bytes, 10, scores, NULL) == ADAM_DATA);
    check_comma();
    assert(adam_predict_floats(model, values, 1, scores, NULL) == ADAM_OK);
    check_comma();
    assert(adam_predict(model, bytes, size, scores, NULL) == ADAM_OK);
    check_comma();
    setlocale(LC_ALL, "C");
    for (int c = 0; c < 10; c++)
        printf("%s\t%.9g\n", adam_class(model, c), scores[c]);
    adam_close(model);
    return 0;
}
END
    compile comma
    run_ok env LOCPATH="$PWD/locales" LC_ALL=de_DE.UTF-8 ./comma "$model" "$picture"
    printf '%s\n' "$output" >got
    wanted >wanted
    same_scores got wanted
}

@test "a program that rounds and traps in its own way has the same scores, and its own way" {
    printf 'input 3\nlinear units=2 init=one\n' >sums.net
    python - <<'END'
import numpy
rng = numpy.random.default_rng(1)
rows = rng.normal(size=(40, 3)).astype(numpy.float32)
numpy.save("train.npy", rows.reshape(40, 1, 1, 3))
rows[0], rows[1] = 2e-39, 3e38  # sums that are subnormal, and none
rows.tofile("rows")
numpy.save("rows.npy", rows.reshape(40, 1, 1, 3))
numpy.save("targets.npy", numpy.zeros((40, 2), numpy.float32))
END
    adam-worker --model sums.net --data train.npy --targets targets.npy --rate 0 --epochs 1 \
        --threads 1 --out sums -q
    cat >ways.c <<'END'
#define _GNU_SOURCE
#include <adam.h>
#include <assert.h>
#include <fenv.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 40 };

int main(int argc, char **argv) {
    static float rows[COUNT][3], usual[COUNT][2], scores[COUNT][2];
    struct adam_model *model;
    FILE *file = fopen("rows", "rb");
    assert(argc == 2 && file && fread(rows, sizeof rows, 1, file) == 1);
    fclose(file);
    assert(adam_open(&model, argv[1], NULL) == ADAM_OK);
    assert(adam_predict_floats(model, rows[0], COUNT, usual[0], NULL) == ADAM_OK);
    assert(usual[0][0] == 0);
    adam_close(model);
    fesetround(FE_UPWARD);
    feenableexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
    assert(adam_open(&model, argv[1], NULL) == ADAM_OK);
    assert(adam_predict_floats(model, rows[0], COUNT, scores[0], NULL) == ADAM_OK);
    assert(!memcmp(scores, usual, sizeof usual));
    assert(fegetround() == FE_UPWARD);
    assert(fegetexcept() == (FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO));
    volatile float least = 0x1p-126f;
    assert(least / 2 > 0);
    fesetround(FE_TONEAREST);
    for (int i = 0; i < COUNT; i++)
        printf("%.9g\t%.9g\n", usual[i][0], usual[i][1]);
    adam_close(model);
    return 0;
}
END
    compile ways -lm -frounding-math
    run_ok ./ways sums
    printf '%s\n' "$output" >got
    adam-eval --model sums --data rows.npy --targets targets.npy --per-sample - -q |
        sed 1d | cut -f 2,3 >wanted
    python - <<'END'
import numpy
got, wanted = (numpy.loadtxt(name, dtype=numpy.float32) for name in ("got", "wanted"))
assert got.shape == (40, 2) and numpy.allclose(got, wanted, 1e-5, 0), (got, wanted)
END
}
