# adam: programs that train deep networks on plain CPUs.
#
#   make                 build the programs (in build/)
#   make demo            install what is missing, build, and train on pictures drawn here
#   make check           install what is missing, and run all tests
#   make check-arm64     the unit tests, built for 64-bit ARM, under qemu (tests/arm64/run)
#   make bench           measure against peers and bounds (tests/bench)
#   make chaos           kill and stop parts of runs at random (tests/chaos/run)
#   make fuzz            feed every parser with hostile bytes, FUZZ_SECONDS each
#   make sim             run schedules SEEDS of a simulated cluster that fails (tests/sim)
#   make proof           check models of the protocols exhaustively (tests/proof)
#   make mutants         all mutants that we know, then the library broken one line at a time:
#                        do its tests notice?
#   make lint            format, static checks, shell scripts, manuals (or one of them:
#                        format-check tidy cppcheck shellcheck man-check; make lint-quick is
#                        the first and the last two)
#   make libadam         the library for other programs, shared and static (adam(3))
#   make install         programs, libadam, manuals and completions below DESTDIR/PREFIX
#   make uninstall       remove what make install put there
#   make deb             a Debian package, in build/deb, whose maintainer you are (or DEBFULLNAME and
#                        DEBEMAIL)
#   make completions     write completions/ anew from the programs' own tables
#   make deps test-deps  only install what building or testing needs (Debian); asks before it
#                        uses sudo, unless YES=1
#   make clean           remove build/
#
#   SAN=thread|address|undefined   build and check under a sanitizer (in build/SAN)
#   KERNELS=bare                   with SAN: it leaves the kernels alone, which it slows the most
#   DEV=1                          build fast, with only kernels optimized (in build/dev)
#   PREFIX=/usr/local DESTDIR=     where make install puts things
#   STRIP=:                        leaves in what is installed what debuggers read
#   TESTS='tests/cli/prep*.bats'   what make check runs (all of tests/)
#   FUZZ_SECONDS=60                how long each fuzz target runs
#   SEEDS=1..100000      the schedules of make sim
#   MUTANTS='--each 12 ps'         options and folders of tests/mutants/run (all of them)
#   CFLAGS='-O2 -g' CPPFLAGS= LDFLAGS= LDLIBS=   yours, beside what the sources need

VERSION = 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
STRIP ?= strip
SAN ?=
KERNELS ?=
DEV ?=
TESTS ?=
FUZZ_SECONDS ?= 60
SEEDS ?= 1..100000
MUTANTS ?=
BUILD = build$(if $(SAN),/$(SAN)$(if $(KERNELS),/$(KERNELS)))$(if $(DEV),/dev)

# Why each library is here, and the Debian package that brings it.
LIBRARIES += zlib1g-dev            # CRC-32, and gzip of IDX and CIFAR files
LIBRARIES += libpng-dev            # PNG pictures
LIBRARIES += libjpeg62-turbo-dev   # JPEG pictures, with the DCT scaled
LIBRARIES += libopenblas-dev       # matrix products on processors with neither AVX2 nor NEON, which load it
LIBRARIES += libarchive-dev        # tar in all its dialects, and gzip, zstd, xz of any input
LIBRARIES += libjansson-dev        # JSON of metrics, manifests and safetensors headers
LIBRARIES += libnuma-dev           # memory on the node of the thread that uses it
LIBRARIES += libnng-dev            # connections: TCP, TLS and Unix sockets, asynchronous
LIBRARIES += libmbedtls-dev        # makes the keys and certificates that nng's TLS reads
LIBRARIES += libmicrohttpd-dev     # the prediction service: nng's server of HTTP bounds neither callers
                                   # nor time, and cannot be passed a socket
LIBRARIES += libprotobuf-c-dev     # the encoding of ONNX files
LIBRARIES += libonnx-dev           # what is in an ONNX file: onnx.proto
BUILD_TOOLS = gcc make libc6-dev protobuf-c-compiler
# What Fedora calls those of them that have another name there.
FEDORA = zlib1g-dev=zlib-devel libpng-dev=libpng-devel libjpeg62-turbo-dev=libjpeg-turbo-devel \
	libopenblas-dev=openblas-devel libarchive-dev=libarchive-devel libjansson-dev=jansson-devel \
	libnuma-dev=numactl-devel libnng-dev=nng-devel libmbedtls-dev=mbedtls-devel \
	libmicrohttpd-dev=libmicrohttpd-devel libprotobuf-c-dev=protobuf-c-devel libonnx-dev=onnx-devel \
	libc6-dev=glibc-devel
# Why each test tool is here.
TEST_TOOLS += bats                 # runs the tests of the programs
TEST_TOOLS += iproute2             # machines of network namespaces
TEST_TOOLS += pkgconf              # finds libadam as its users do
TEST_TOOLS += jq                   # reads our JSON as a user would
TEST_TOOLS += curl                 # asks a controller as Prometheus would
TEST_TOOLS += mandoc groff-base    # lint and show the manuals
TEST_TOOLS += zsh fish             # load the completions
TEST_TOOLS += zstd xz-utils        # compressed inputs
TEST_TOOLS += netpbm               # PNM from another hand
TEST_TOOLS += slurmctld slurmd slurm-client # a Slurm that runs what adam-ctl sbatch prints
TEST_TOOLS += openssh-server openssh-client # machines that adam-ctl up --hosts logs in to
TEST_TOOLS += openssl              # certificates of the past and of the future
TEST_TOOLS += systemd              # checks the units that adam-ctl systemd prints
TEST_TOOLS += python3-numpy        # an independent reader of .npy and safetensors
TEST_TOOLS += python3-pil          # an independent decoder and resampler
TEST_TOOLS += fonts-dejavu         # examples/finetune.sh learns their digits
TEST_TOOLS += python3-torch        # an independent reference for every layer
TEST_TOOLS += nodejs               # runs the script of the service's page
TEST_TOOLS += dpkg-dev             # what the package that make deb builds depends on
TEST_TOOLS += python3-onnx         # checks what adam-ctl export writes
DEB_TOOLS = dpkg-dev               # what a package depends on
PROOF_TOOLS = spin                 # explores all states of a model
FUZZ_TOOLS = clang libclang-rt-dev
# The peers we measure beside; OpenBLAS of the OpenMP flavour is the one whose threads do not
# fight with those of PyTorch.
BENCH_TOOLS = python3-numpy python3-pil python3-opencv python3-torch python3-torchvision libopenblas0-openmp

CC = gcc
AR = gcc-ar
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
# Yours to set, here or in the environment.
CFLAGS ?= $(if $(DEV),-O0,-O2) -g
CPPFLAGS ?=
LDFLAGS ?=
LDLIBS ?=
# What the sources need, whatever yours are. Equal bytes from the same seed rest on the flags
# of floating-point arithmetic.
NEEDED_CPPFLAGS = -Ilib -D_GNU_SOURCE -DADAM_VERSION='"$(VERSION)"'
NEEDED_CFLAGS = -std=c11 -pthread -fno-math-errno -fno-trapping-math -ffp-contract=off
# The library is compiled once, for programs and libadam alike: as long as nothing but
# lib/api/adam.h is visible outside, position-independent code of a library is that of a program.
LIB_CFLAGS = -fPIC -fvisibility=hidden
# gold, where it is installed, links twice as fast; of clang's sanitizers it warns in vain.
LINKER := $(shell command -v ld.gold >/dev/null && echo -fuse-ld=gold)
# A program loads only the libraries that it uses.
NEEDED_LDFLAGS = -pthread -Wl,--as-needed $(SANFLAGS) $(LINKER)
NEEDED_LDLIBS = -lnng -lmicrohttpd -lmbedtls -lmbedx509 -lmbedcrypto -larchive -lpng -ljpeg -lz -ljansson -lnuma -lprotobuf-c -lm

# Only kernel files get special compiler flags: by the folder they are in. Pictures
# come out the same on every processor, so no other folder than lib/kernels may
# fuse a multiplication with an addition.
# Sanitizers take minutes to compile what -O3 makes of the kernels' templates.
# Tracking their variables for debuggers slows the compiler, and does not change the code.
KERNEL_OPTIMIZE = $(if $(SAN),$(if $(KERNELS),-O3 -fno-sanitize=all,-O1),-O3)
AVX2_FLAGS = -mavx2 -mfma -mf16c
AVX512_FLAGS = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512
KERNEL_FLAGS = $(if $(findstring /ref/,$<),$(KERNEL_OPTIMIZE)) \
	$(if $(findstring /avx2/,$<),$(KERNEL_OPTIMIZE) $(AVX2_FLAGS)) \
	$(if $(findstring /avx512/,$<),$(KERNEL_OPTIMIZE) $(AVX512_FLAGS)) \
	$(if $(findstring /neon/,$<),$(KERNEL_OPTIMIZE)) \
	$(if $(findstring lib/kernels/avx,$<)$(findstring lib/kernels/neon,$<),-ffp-contract=fast -fno-var-tracking)

# Folders that are for another processor than this one.
MACHINE := $(shell $(CC) -dumpmachine)
FOREIGN = $(if $(filter x86_64-%,$(MACHINE)),,%/avx2/ %/avx512/) $(if $(filter aarch64-%,$(MACHINE)),,%/neon/)
LIB_SOURCES = $(foreach source,$(sort $(wildcard lib/*/*.c lib/*/*/*.c)),$(if $(filter $(FOREIGN),$(dir $(source))),,$(source)))
# What protoc-c makes of the format of ONNX, read from the folder that it is made in.
ONNX_FORMAT = $(BUILD)/lib/onnx/onnx.pb-c
ONNX_FOLDER = /usr/include/onnx
LIB_OBJECTS = $(LIB_SOURCES:%.c=$(BUILD)/%.o) $(ONNX_FORMAT).o
# Raised when a program that was linked with libadam would no longer run with it.
SONAME = 0
LIBADAM = $(BUILD)/api/libadam.so $(BUILD)/api/libadam.a $(BUILD)/api/adam.pc
PROGRAMS = $(patsubst cmd/%.c,%,$(sort $(wildcard cmd/*.c)))
UNIT_TESTS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/unit/*.c)))
BENCHES = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/*.c)))
HELPERS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/helper/*.c)))
# What the simulator and its share in the unit tests are made of.
SIM_OBJECTS = $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/sim/sim.c,$(sort $(wildcard tests/sim/*.c))))
SIM = $(BUILD)/tests/sim/sim
FUZZERS = $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
MANUALS = $(sort $(wildcard man/*.[1-9]))
EXAMPLES = $(filter-out examples/debian/%,$(sort $(wildcard examples/*.* examples/*/*.*)))
C_FILES = $(sort $(wildcard cmd/*.c cmd/*/*.[ch] lib/*/*.[ch] lib/*/*/*.[ch] tests/*/*.[ch]))
SCRIPTS = .ci/run tests/run $(sort $(wildcard tests/arm64/run tests/fuzz/run tests/chaos/run tests/proof/run tests/bench/*.sh examples/*.sh examples/*/*.sh))

.PHONY: all libadam tests fuzzers help deps test-deps demo check check-arm64 bench chaos sim proof fuzz mutants clean always
.PHONY: lint lint-quick format-check tidy cppcheck shellcheck man-check install deb uninstall completions
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS:%=$(BUILD)/%)
libadam: $(LIBADAM)
tests: all $(UNIT_TESTS) $(HELPERS) $(BENCHES) $(SIM)
fuzzers: $(FUZZERS)

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

ALL_CPPFLAGS = $(NEEDED_CPPFLAGS) $(CPPFLAGS)
ALL_CFLAGS = $(NEEDED_CFLAGS) $(CFLAGS) $(WARNINGS) $(SANFLAGS)
ALL_LDFLAGS = $(NEEDED_LDFLAGS) $(LDFLAGS)
ALL_LDLIBS = $(NEEDED_LDLIBS) $(LDLIBS)

# The compiler and its flags, touched only when they change: no build mixes two.
$(BUILD)/flags: always
	@mkdir -p $(@D) $(sort $(dir $(C_FILES:%=$(BUILD)/%)))
	@printf '%s\n' '$(subst ','\'',$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIB_CFLAGS) $(value KERNEL_FLAGS))' >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# What a tool makes gets its name when it is whole: make may be killed at any time.
named = @mv $@.new $@

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(KERNEL_FLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@.new $<
	$(named)

$(BUILD)/lib/%.o: private NEEDED_CFLAGS += $(LIB_CFLAGS)

$(ONNX_FORMAT).c $(ONNX_FORMAT).h &: $(ONNX_FOLDER)/onnx.proto $(BUILD)/flags
	protoc-c --proto_path=$(ONNX_FOLDER) --c_out=$(@D) onnx.proto
# Its assertions are about calls with messages of another kind, which are its own.
$(ONNX_FORMAT).o: $(ONNX_FORMAT).c
	$(CC) $(ALL_CPPFLAGS) -DNDEBUG $(ALL_CFLAGS) -c -o $@.new $<
	$(named)
$(BUILD)/lib/onnx/%.o: private NEEDED_CPPFLAGS += -I$(BUILD)/lib/onnx
$(patsubst %.c,$(BUILD)/%.o,$(wildcard lib/onnx/*.c)): | $(ONNX_FORMAT).h
$(BUILD)/lib/answer/page.o: lib/answer/page.html

# Made anew each time, so that no object of a deleted source stays in it; it only names
# the objects.
$(BUILD)/libadam.a: $(LIB_OBJECTS)
	rm -f $@.new && $(AR) rcsT $@.new $^
	$(named)

# The library for others has what lib/api needs of the rest, and shows only adam.h: the shared one
# since all else is hidden, the static one as a single object in which that was made local.
$(BUILD)/api/libadam.so: $(BUILD)/lib/api/adam.o lib/api/adam.map $(BUILD)/libadam.a
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-soname,libadam.so.$(SONAME),--version-script=lib/api/adam.map,-z,defs \
		$(ALL_LDFLAGS) -o $@.new $(filter %.o %.a,$^) $(ALL_LDLIBS)
	$(named)
$(BUILD)/api/libadam.a: $(BUILD)/lib/api/adam.o $(BUILD)/libadam.a
	@mkdir -p $(@D)
	$(LD) -r -o $(@D)/adam.o $^
	objcopy --localize-hidden $(@D)/adam.o
	rm -f $@.new && $(AR) rcs $@.new $(@D)/adam.o
	$(named)
$(BUILD)/api/adam.pc: lib/api/adam.pc.in always
	@mkdir -p $(@D)
	@sed 's,@PREFIX@,$(PREFIX),; s,@VERSION@,$(VERSION),' $< >$@

$(BUILD)/cmd/%.o: private NEEDED_CPPFLAGS += -Icmd
# A program's main() is cmd/NAME.c; what it is split into lies in the folder cmd/NAME/.
$(BUILD)/adam-%: $(BUILD)/cmd/adam-%.o $(BUILD)/libadam.a
	$(CC) $(ALL_LDFLAGS) -o $@.new $(filter %.o,$^) $(BUILD)/libadam.a $(ALL_LDLIBS)
	$(named)
$(foreach p,$(PROGRAMS),$(eval $(BUILD)/$(p): $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/$(p)/*.c))))

$(BUILD)/tests/fuzz/%: private NEEDED_LDFLAGS += -fsanitize=fuzzer
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libadam.a
	$(CC) $(ALL_LDFLAGS) -o $@.new $(filter %.o,$^) $(BUILD)/libadam.a $(ALL_LDLIBS)
	$(named)

$(SIM) $(BUILD)/tests/unit/test_simulation: $(SIM_OBJECTS)

-include $(patsubst %.c,$(BUILD)/%.d,$(filter %.c,$(C_FILES)))

# Installs the packages of $(1) that are missing, and says nothing when none is. Who is not root is
# asked first, and told the commands if nobody is there to answer.
define install_missing
@missing=; for p in $(sort $(1)); do \
	dpkg-query -W -f='$${db:Status-Status}' $$p 2>/dev/null | grep -qx installed || missing="$$missing $$p"; \
done; \
[ -n "$$missing" ] || exit 0; \
if [ "$$(id -u)" = 0 ]; then \
	echo "installing$$missing"; \
	sudo=; \
else \
	fedora=$$(for p in $$missing; do echo $(FEDORA) $$p=$$p | tr ' ' '\n' | sed -n "s/^$$p=//p" | head -n 1; done | tr '\n' ' '); \
	printf 'missing:%s\n  Debian: sudo apt-get install%s\n  Fedora: sudo dnf install %s\n' "$$missing" "$$missing" "$$fedora" >&2; \
	answer=$(if $(YES),y); \
	if [ -z "$$answer" ] && [ -t 0 ] && command -v apt-get >/dev/null; then printf 'run the first of these now? [y/N] ' >&2; read -r answer; fi; \
	[ "$$answer" = y ] || exit 1; \
	sudo=sudo; \
fi; \
$$sudo apt-get update -qq && \
$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null
endef

deps:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES))

test-deps:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES) $(TEST_TOOLS))

# One make for what is missing, another one for the build: compilers may come in between.
parallel = @$(MAKE) --no-print-directory -s -j"$$(nproc)"

demo: deps
	$(parallel) all
	@PATH="$(CURDIR)/$(BUILD):$$PATH" examples/demo.sh

check: test-deps
	$(parallel) tests
	@BUILD=$(BUILD) SAN=$(SAN) tests/run $(TESTS)

bench:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES) $(BENCH_TOOLS))
	$(parallel) all $(BENCHES)
	@for script in $(sort $(wildcard tests/bench/*.sh)); do \
		echo "# $$script"; PATH="$(CURDIR)/$(BUILD):$$PATH" BUILD=$(BUILD) $$script || exit; \
	done

check-arm64: deps
	@tests/arm64/run

chaos: test-deps
	$(parallel) all
	@BUILD=$(BUILD) tests/chaos/run

sim: deps
	$(parallel) $(SIM)
	@$(SIM) --seeds $(SEEDS)

proof:
	$(call install_missing,$(PROOF_TOOLS))
	@tests/proof/run

# The whole library again, by clang, with coverage feedback and both sanitizers; but no
# parser's bytes reach the kernels of layers, whose templates would take clang hours so.
fuzz:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES) $(FUZZ_TOOLS))
	$(parallel) BUILD=build/fuzz CC=clang AR=ar LINKER= WARNINGS=-Wall \
		KERNEL_OPTIMIZE='-O1 $$(if $$(findstring lib/kernels/,$$<),-fno-sanitize=all)' \
		SANFLAGS='-fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' fuzzers
	@BUILD=build/fuzz FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run

mutants: test-deps
	$(parallel) tests
	@MUTANTS_SHARE=1 BUILD=$(BUILD) SAN=$(SAN) tests/run tests/cli/*-mutants.bats
	@BUILD=$(BUILD) SAN=$(SAN) CC='$(CC)' LDLIBS='$(ALL_LDLIBS)' tests/mutants/run $(MUTANTS)

# make -k lint shows what all of them find.
lint: format-check tidy cppcheck shellcheck man-check
lint-quick: format-check shellcheck man-check

format-check:
	$(call install_missing,clang-format)
	@clang-format --dry-run -Werror $(C_FILES)

# Of these files, with the flags that they need.
run_tidy = printf '%s\n' $1 | \
	xargs -P "$$(nproc)" -I{} clang-tidy --quiet {} -- $(NEEDED_CPPFLAGS) -Icmd -I$(BUILD)/lib/onnx -std=c11 $2 2>/dev/null
in_folder = $(foreach f,$(filter %.c,$(C_FILES)),$(if $(findstring /$1/,$f),$f))

tidy:
	$(call install_missing,$(BUILD_TOOLS) $(LIBRARIES) clang-tidy)
	$(parallel) $(ONNX_FORMAT).h
	@$(call run_tidy,$(filter-out $(foreach folder,avx2 avx512 neon,$(call in_folder,$(folder))),$(filter %.c,$(C_FILES))))
	@$(call run_tidy,$(call in_folder,avx2),$(AVX2_FLAGS))
	@$(call run_tidy,$(call in_folder,avx512),$(AVX512_FLAGS))

cppcheck:
	$(call install_missing,cppcheck)
	@cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr \
		--suppressions-list=.cppcheck --library=posix -j "$$(nproc)" $(NEEDED_CPPFLAGS) -Icmd cmd lib

# bats ends a test at the first failure, and sets variables of its own.
shellcheck:
	$(call install_missing,shellcheck)
	@shellcheck $(SCRIPTS)
	@shellcheck -S warning -e SC2164,SC2154,SC2046,SC1010 $(wildcard tests/cli/*.bats tests/helper/*.bash)

man-check:
	$(call install_missing,mandoc)
	@mandoc -Tlint -Wwarning $(MANUALS)

completions: all
	@mkdir -p completions
	@for p in $(PROGRAMS); do \
		$(BUILD)/$$p --completion bash >completions/$$p.bash && \
		$(BUILD)/$$p --completion zsh >completions/_$$p && \
		$(BUILD)/$$p --completion fish >completions/$$p.fish || exit; \
	done

# What is installed, as SOURCE=PLACE below the prefix, and symbolic links to it.
INSTALLED = $(foreach p,$(PROGRAMS),$(BUILD)/$p=bin/$p \
	completions/$p.bash=share/bash-completion/completions/$p \
	completions/_$p=share/zsh/site-functions/_$p \
	completions/$p.fish=share/fish/vendor_completions.d/$p.fish) \
	$(foreach m,$(MANUALS),$m=share/man/man$(subst .,,$(suffix $m))/$(notdir $m)) \
	$(foreach e,$(EXAMPLES),$e=share/doc/adam/$e) \
	$(BUILD)/api/libadam.so=lib/libadam.so.$(VERSION) $(BUILD)/api/libadam.a=lib/libadam.a \
	$(BUILD)/api/adam.pc=lib/pkgconfig/adam.pc lib/api/adam.h=include/adam.h
INSTALLED_LINKS = lib/libadam.so.$(SONAME) lib/libadam.so

# Without what only debuggers read, which is most of it.
install: all libadam
	@for pair in $(INSTALLED); do \
		[ -x "$${pair%%=*}" ] && mode=755 || mode=644; \
		place="$(DESTDIR)$(PREFIX)/$${pair#*=}"; \
		install -D -m $$mode "$${pair%%=*}" "$$place" || exit; \
		case $${pair#*=} in \
		bin/* | lib/*.so.*) $(STRIP) --strip-unneeded "$$place" || exit ;; \
		lib/*.a) $(STRIP) --strip-debug "$$place" || exit ;; \
		esac; \
	done
	@for link in $(INSTALLED_LINKS); do \
		ln -sf libadam.so.$(VERSION) "$(DESTDIR)$(PREFIX)/$$link" || exit; \
	done

# The files of the package are in examples/debian.
deb: all libadam
	$(call install_missing,$(DEB_TOOLS))
	@rm -rf $(BUILD)/deb
	@$(MAKE) --no-print-directory -s install DESTDIR=$(BUILD)/deb/debian/adam PREFIX=/usr
	@examples/debian/package.sh $(BUILD)/deb $(VERSION)

uninstall:
	@for pair in $(INSTALLED) $(INSTALLED_LINKS); do rm -f "$(DESTDIR)$(PREFIX)/$${pair#*=}"; done

clean:
	rm -rf build
