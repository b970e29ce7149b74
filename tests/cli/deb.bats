#!/usr/bin/env bats
# make deb: a Debian package of what make install installs. References: dpkg, lintian, and a machine
# that has nothing but what the package says it needs.
#   ADAM_CHROOT   a folder with such a machine, for root, who makes it with
#                 debootstrap --variant=minbase bookworm FOLDER; the package is installed there
load ../helper/common
load ../helper/programs

setup_file() {
    if [ -n "${SAN:-}" ] || ! command -v dpkg-shlibdeps >/dev/null; then return; fi
    DEBFULLNAME="Ann O'Hara" DEBEMAIL=ann@debian.org \
        make -s -C "$ROOT" deb BUILD="${BUILD#"$ROOT/"}" >"$BATS_FILE_TMPDIR/said"
}

setup() {
    if [ -n "${SAN:-}" ]; then skip "only the plain build is packed"; fi
    command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-dev here"
    cd "$BATS_TEST_TMPDIR"
    package=$(echo "$BUILD"/deb/adam_*.deb)
}

@test "the package has all that make install installs, of root, and says what it needs" {
    make -s -C "$ROOT" install DESTDIR="$PWD/all" PREFIX=/usr BUILD="${BUILD#"$ROOT/"}"
    dpkg-deb --fsys-tarfile "$package" >files.tar
    diff <(cd all && find . ! -type d | sed 's,\(man[1-9]/.*\),\1.gz,' | sort) \
        <(tar -tf files.tar | grep -v '/$' | grep -v 'doc/adam/\(copyright\|changelog.gz\)$' | sort)
    [ -z "$(tar -tvf files.tar | grep -v ' root/root ')" ]
    [ "$(dpkg-deb -f "$package" Version)" = "$(adam-ctl --version | awk '{ print $2; exit }')" ]
    run_ok dpkg-deb -f "$package" Depends
    [[ $output = *libc6* && $output = *libjansson4* && $output != *-dev* ]]
}

@test "who makes it is its maintainer" {
    local maintainer="Ann O'Hara <ann@debian.org>"
    [ "$(dpkg-deb -f "$package" Maintainer)" = "$maintainer" ]
    dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/doc/adam/changelog.gz | gzip -d >changelog
    grep -qF -- " -- $maintainer  " changelog
    mkdir -p deb/debian/adam/usr/{bin,lib,share/man/man1}
    # Of anything, soon packed.
    cp "$(type -P true)" deb/debian/adam/usr/bin
    echo | gcc -shared -x c - -o deb/debian/adam/usr/lib/libadam.so.0.1
    (cd deb && env -u DEBFULLNAME -u DEBEMAIL "$ROOT/examples/debian/package.sh" . 0.1)
    [ "$(dpkg-deb -f deb/adam_*.deb Maintainer)" = "$(id -un) <$(id -un)@$(uname -n)>" ]
}

@test "lintian finds no error in it" {
    command -v lintian >/dev/null || skip "no lintian here"
    run_ok lintian --allow-root --fail-on error "$package"
    [[ $output != *"E: "* ]]
}

@test "it is installed, used and removed on a machine that has nothing else" {
    [ -n "${ADAM_CHROOT:-}" ] || skip "ADAM_CHROOT names no machine to install it on"
    local root=$ADAM_CHROOT program
    cp "$package" "$root/tmp/adam.deb"
    run_ok chroot "$root" apt-get install -y -q --no-install-recommends /tmp/adam.deb
    for program in $(programs); do
        run_ok chroot "$root" "$program" --version
    done
    cp "$ROOT/examples/digits.net" "$root/tmp"
    run_ok chroot "$root" adam-ctl check /tmp/digits.net
    [[ $output = *82934* ]]
    run_ok chroot "$root" apt-get purge -y -q adam
    [ -z "$(find "$root/usr" -path '*adam*' ! -path '*/dpkg/*')" ]
}
