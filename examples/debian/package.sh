#!/bin/sh
# A Debian package of what is installed below STAGE/debian/adam with the prefix /usr, as
# STAGE/adam_VERSION_ARCHITECTURE.deb: make deb.
#
# Its maintainer is who makes it, as Debian's own tools name them: $DEBFULLNAME and $DEBEMAIL.
#
#   package.sh STAGE VERSION
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=$2
maintainer="${DEBFULLNAME:-$(id -un)} <${DEBEMAIL:-$(id -un)@$(uname -n)}>"
cd "$1"
root=debian/adam
doc=$root/usr/share/doc/adam

fill() {
    maintainer=$maintainer awk '{
        at = index($0, "@MAINTAINER@")
        print at ? substr($0, 1, at - 1) ENVIRON["maintainer"] substr($0, at + 12) : $0
    }' "$1"
}

fill "$here/control" >debian/control
# One entry, whatever the version is.
fill "$here/changelog" | sed "1s/([^)]*)/($version)/" >debian/changelog
install -D -m 644 "$here/copyright" "$doc/copyright"
gzip -9nc debian/changelog >"$doc/changelog.gz"
find "$root/usr/share/man" -type f -exec gzip -9n {} +

mkdir "$root/DEBIAN"
echo "libadam 0 adam (>= $version)" >"$root/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
# Modes are those of the package, whatever the umask.
chmod -R u=rwX,go=rX "$root"
chmod 644 "$root"/usr/lib/libadam.so.*.*
dpkg-shlibdeps "$root"/usr/bin/* "$root"/usr/lib/libadam.so.*.*
dpkg-gencontrol -padam -P"$root"
dpkg-deb --root-owner-group --build "$root" .
