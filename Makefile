# adam: make, make demo, make check, make bench, make fuzz, make lint, make install
#
#   SAN=thread|address|undefined   build and check under a sanitizer (in build/SAN)
#   PREFIX=/usr/local DESTDIR=     where make install puts things
#   TESTS='tests/cli/prep*.bats'   what make check runs (all of tests/)

VERSION = 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
SAN ?=
BUILD = build$(if $(SAN),/$(SAN))

# Why each library is here, and the Debian package that brings it.
LIBRARIES += zlib1g-dev            # CRC-32, and gzip of IDX and CIFAR files
LIBRARIES += libpng-dev            # PNG pictures
LIBRARIES += libjpeg62-turbo-dev   # JPEG pictures, with the DCT scaled
LIBRARIES += libopenblas-dev       # matrix products, where our own kernels do not win
LIBRARIES += libarchive-dev        # tar in all its dialects, and gzip, zstd, xz of any input
LIBRARIES += libjansson-dev        # JSON of metrics, manifests and safetensors headers
LIBRARIES += libnuma-dev           # memory on the node of the thread that uses it
BUILD_TOOLS = gcc make libc6-dev
# Why each test tool is here.
TEST_TOOLS += bats                 # runs the tests
TEST_TOOLS += jq                   # reads our JSON as a user would
TEST_TOOLS += mandoc               # lints the manuals
TEST_TOOLS += zsh fish             # load the completions
TEST_TOOLS += zstd xz-utils        # compressed inputs
TEST_TOOLS += netpbm               # PNM from another hand
TEST_TOOLS += python3-numpy        # an independent reader of .npy and safetensors
TEST_TOOLS += python3-pil          # an independent decoder and resampler
TEST_TOOLS += python3-torch        # an independent reference for every layer
LINT_TOOLS = clang-format clang-tidy cppcheck shellcheck mandoc
FUZZ_TOOLS = clang libclang-rt-dev

CC = gcc
AR = gcc-ar
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
OPTIMIZE = -O2 -g
CPPFLAGS = -Ilib -D_GNU_SOURCE -DADAM_VERSION='"$(VERSION)"'
CFLAGS = -std=c11 -pthread -fno-math-errno -fno-trapping-math $(OPTIMIZE) $(WARNINGS) $(SANFLAGS)
LDFLAGS = -pthread $(SANFLAGS)
LDLIBS = -larchive -lpng -ljpeg -lz -ljansson -lopenblas -lnuma -lm

# Only kernel files get special compiler flags: by the folder they are in.
KERNEL_FLAGS = $(if $(findstring /ref/,$<),-O3) \
	$(if $(findstring /avx2/,$<),-O3 -mavx2 -mfma -mf16c) \
	$(if $(findstring /avx512/,$<),-O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)

LIB_SOURCES = $(sort $(wildcard lib/*/*.c lib/*/*/*.c))
LIB_OBJECTS = $(LIB_SOURCES:%.c=$(BUILD)/%.o)
PROGRAMS = $(patsubst cmd/%.c,%,$(sort $(wildcard cmd/*.c)))
UNIT_TESTS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/unit/*.c)))
BENCHES = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/*.c)))
HELPERS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/helper/*.c)))

.PHONY: all deps test-deps demo check bench fuzz lint install uninstall clean completions
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS:%=$(BUILD)/%)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(KERNEL_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libadam.a: $(LIB_OBJECTS)
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/adam-%: $(BUILD)/cmd/adam-%.o $(BUILD)/libadam.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libadam.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Installs the packages of $(1) that are missing, and says nothing when none is.
define install_missing
@missing=; for p in $(1); do \
	dpkg-query -W -f='$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; \
done; \
if [ -n "$$missing" ]; then \
	echo "installing$$missing"; \
	[ "$$(id -u)" = 0 ] && sudo= || sudo=sudo; \
	$$sudo apt-get update -qq && \
	$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
fi
endef

deps:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES))

test-deps: deps
	$(call install_missing,$(TEST_TOOLS) $(LINT_TOOLS))

demo: deps
	@$(MAKE) --no-print-directory -s -j"$$(nproc)" all
	@PATH="$(CURDIR)/$(BUILD):$$PATH" examples/demo.sh

check: test-deps
	@$(MAKE) --no-print-directory -s -j"$$(nproc)" all tests
	@BUILD=$(BUILD) SAN=$(SAN) tests/run $(TESTS)

.PHONY: tests
tests: $(UNIT_TESTS) $(HELPERS) all

-include $(LIB_OBJECTS:.o=.d) $(UNIT_TESTS:=.d) $(HELPERS:=.d) $(BENCHES:=.d) $(PROGRAMS:%=$(BUILD)/cmd/%.d)

clean:
	rm -rf build
