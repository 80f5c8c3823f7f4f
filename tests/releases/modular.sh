#!/bin/sh
# Build libvirt's daemon for QEMU and its proxy, virtqemud and virtproxyd, into .cache/libvirt-modular:
# as root, some five minutes. Debian's source builds them, and its packages leave them out.
#   sh tests/releases/modular.sh
# They are of the version that is installed, and run with its libraries and drivers.
set -eu
cache=$(readlink -f "$(dirname "$0")/../..")/.cache/libvirt-modular
version=$(virsh --version)
if [ "$("$cache/virtqemud" --version 2>/dev/null)" = "$cache/virtqemud (libvirt) $version" ] &&
    [ -x "$cache/virtproxyd" ]; then
    exit 0
fi
work=$cache/build
log=$cache/log
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
: >"$log"
fail() { tail -n 15 "$log" >&2; echo "modular: $* (all of it: $log)" >&2; exit 1; }

packages='meson ninja-build gcc libc6-dev pkg-config gettext python3-docutils xsltproc libxml2-utils libxml2-dev
    libgnutls28-dev libglib2.0-dev libtirpc-dev libjson-c-dev libsasl2-dev libcap-ng-dev libnl-3-dev
    libnl-route-3-dev libssh-dev'
# shellcheck disable=SC2086  # a list
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >>"$log" 2>&1 ||
    fail "could not install:" $packages

# Any suite with the same upstream version has the same tar file.
mirror=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
    awk '$2 ~ /^(bookworm|trixie)(-updates)?$/ { print $1; exit }')
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
private() {
    command=$1
    shift
    "$command" -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User=root "$@"
}
for suite in bookworm-backports bookworm trixie sid; do
    [ ! -e "$work/source" ] || break
    echo "deb-src [signed-by=$keyring] $mirror $suite main" >"$work/apt/sources.list"
    private apt-get update -q >>"$log" 2>&1 || continue
    full=$(private apt-cache showsrc --only-source libvirt 2>>"$log" |
        sed -n "s/^Version: \($version-.*\)/\1/p" | head -n 1)
    [ -n "$full" ] || continue
    (cd "$work" && private apt-get source -q --download-only --tar-only "libvirt=$full") >>"$log" 2>&1 || continue
    mkdir "$work/source.part"
    tar -xf "$work/libvirt_$version.orig.tar.xz" --strip-components=1 -C "$work/source.part"
    mv "$work/source.part" "$work/source"
done
[ -e "$work/source" ] || fail "no suite of $mirror has the source of libvirt $version"

# As Debian configures it, but for what these two do not need.
[ -e "$work/out/build.ninja" ] ||
    meson setup "$work/out" "$work/source" --prefix=/usr --sysconfdir=/etc --localstatedir=/var \
        --libexecdir=/usr/lib/libvirt --libdir="lib/$(gcc -print-multiarch)" -Drunstatedir=/run \
        -Dauto_features=disabled -Ddriver_qemu=enabled -Ddriver_remote=enabled -Ddriver_libvirtd=enabled \
        -Djson_c=enabled -Dsasl=enabled -Dpolkit=enabled -Dcapng=enabled -Dlibnl=enabled -Dlibssh=enabled \
        -Dqemu_user=libvirt-qemu -Dqemu_group=libvirt-qemu -Dinit_script=none -Dno_git=true -Ddocs=disabled \
        -Dtests=disabled -Dremote_default_mode=legacy >>"$log" 2>&1 || fail "could not configure"
nice ninja -C "$work/out" src/virtqemud src/virtproxyd >>"$log" 2>&1 || fail "could not build"
cp "$work/out/src/virtqemud" "$work/out/src/virtproxyd" "$cache"
"$cache/virtqemud" --version
rm -rf "$work"
