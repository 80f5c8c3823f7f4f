#!/bin/sh
# Build the QEMU that the pack qemu-patched is for: Debian's source package, with x-vmtune.patch.
#
#   build.sh               as `make qemu-patched` does
#   UNPATCHED=1 build.sh   the same build without the patch, to compare with: FOLDER/unpatched/bin
#
# Into PATCHED_QEMU, by default ~/.cache/vmtune/qemu-patched; the program is then
# FOLDER/bin/qemu-system-x86_64. Libraries and firmware are the distribution's. What is done is not
# done again, and what was interrupted goes on where it was. Nothing below /etc is changed; as root
# it installs the packages that a build needs, otherwise it names them.
set -eu

# The one version that the patch is for: it has no context lines, so it fits no other. The
# checksums are in sources.sha256.
version='1:10.0.13+ds-0+deb13u1'
suite=trixie
release=10.0.13

packages='gcc libc6-dev make pkg-config ninja-build patch dpkg-dev xz-utils python3 python3-venv
    ca-certificates zlib1g-dev libglib2.0-dev libpixman-1-dev libfdt-dev libaio-dev liburing-dev
    libzstd-dev libseccomp-dev libnuma-dev libgnutls28-dev'
options='--target-list=x86_64-softmmu --firmwarepath=/usr/share/qemu:/usr/share/seabios:/usr/lib/ipxe/qemu
    --disable-relocatable --disable-download --disable-install-blobs --disable-docs --disable-tools
    --disable-guest-agent --disable-user --disable-gtk --disable-sdl --disable-slirp
    --enable-kvm --enable-fdt=system --enable-linux-aio --enable-linux-io-uring --enable-zstd
    --enable-seccomp --enable-numa --enable-gnutls'

say() { echo "qemu-patched: $*"; }
die() { echo "qemu-patched: $*" >&2; exit 1; }

[ $# -eq 0 ] || die "no arguments; set PATCHED_QEMU to the folder to build in"

here=$(cd "$(dirname "$0")" && pwd)
folder=${PATCHED_QEMU:-${XDG_CACHE_HOME:-$HOME/.cache}/vmtune/qemu-patched}
case $folder in
    *[!A-Za-z0-9/._+-]* | [!/]*)
        die "PATCHED_QEMU=$folder: use an absolute path of letters, digits and / . _ + -" ;;
esac
patch=$here/x-vmtune.patch
what="with x-vmtune"
if [ "${UNPATCHED:-}" = 1 ]; then
    patched_work=$folder/qemu-$release
    folder=$folder/unpatched
    patch=/dev/null
    what="unpatched"
fi
program=$folder/bin/qemu-system-x86_64
work=$folder/qemu-$release
began=$(date +%s)
key=$(cat "$patch" "$here/sources.sha256" "$here/meson.txt" "$0" | sha256sum | cut -d' ' -f1)

# --- Is it there? Can it be built here? ---------------------------------------

tell() {
    say "$program"
    say "  $("$program" -version | head -n 1), $what"
    [ "$patch" != /dev/null ] || return 0
    say "  to use it for one VM: <emulator>$program</emulator> (docs/how-to/patched-qemu.md)"
}

if [ "$(cat "$folder/built" 2>/dev/null)" = "$key" ] && "$program" -version >/dev/null 2>&1; then
    say "nothing to do: it is built"
    tell
    exit 0
fi

ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
[ ! -r /etc/os-release ] || . /etc/os-release
case "$ID:$VERSION_CODENAME:$(uname -m)" in
    debian:bookworm:x86_64 | debian:trixie:x86_64) ;;
    *) die "this needs Debian 12 or 13 on x86_64; elsewhere apply $here/x-vmtune.patch to QEMU $release of Debian by hand" ;;
esac

mkdir -p "$work/download" || die "$folder cannot be made: set PATCHED_QEMU to another folder"
exec 9>"$folder/lock"
flock -n 9 || die "another build is at work in $folder"
log=$work/log
: >"$log"
fail() { tail -n 25 "$log" >&2; die "$* (all of it: $log)"; }

missing=''
for package in $packages; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
if [ -n "$missing" ]; then
    [ "$(id -u)" -eq 0 ] || die "not root; run it as root, or install by hand:$missing"
    say "installing$missing"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1 ||
        fail "could not install:$missing; after apt-get update it may go"
fi

# --- The source package, from the machine's own mirror -------------------------

verified() { (cd "$work/download" && sha256sum --check --strict --quiet "$here/sources.sha256") >>"$log" 2>&1; }

# Mirrors of this Debian, best first: one that has the -updates suite as well is Debian's own,
# another may be a third party that borrowed the codename.
mirrors() {
    apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' \
        'Created-By: Packages' 2>/dev/null | sort -u | awk -v codename="$VERSION_CODENAME" '
        $2 == codename || $2 == "stable" || $2 == "oldstable" { plain[$1] = 1 }
        $2 == codename "-updates" || $2 ~ /stable-updates$/ { updates[$1] = 1 }
        END {
            for (uri in plain) if (uri in updates) print uri
            for (uri in plain) if (!(uri in updates)) print uri
        }'
}

# apt with sources, lists and caches of its own.
private() {
    command=$1
    shift
    "$command" -c "$work/apt/apt.conf" "$@"
}

fetch() {
    mirror=$1
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [ ! -r $keyring ] && signed='' || signed="[signed-by=$keyring] "
    rm -rf "$work/apt"
    mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
    echo "deb-src $signed$mirror $suite main" >"$work/apt/sources.list"
    cat >"$work/apt/apt.conf" <<CONFIGURATION
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::SourceList "$work/apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$work/apt/lists";
Dir::Cache "$work/apt/cache";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Retries "3";
CONFIGURATION
    say "asking $mirror for the source packages of $suite"
    private apt-get update -q >>"$log" 2>&1 || return 1
    offered=$(private apt-cache showsrc --only-source qemu 2>>"$log" | sed -n 's/^Version: //p' | sort -u)
    echo "$offered" | grep -qxF "$version" || {
        die "$mirror has QEMU $(echo ${offered:-not at all}) in $suite, and the patch is for $version only." \
            "Put the files that $here/sources.sha256 names into $work/download" \
            "(snapshot.debian.org keeps them) and run this again"
    }
    say "getting QEMU $version"
    (cd "$work/download" && private apt-get source -q --download-only "qemu=$version") >>"$log" 2>&1
}

# What the patched build has fetched need not be fetched again.
if [ -n "${patched_work:-}" ] && ! verified; then
    cp "$patched_work"/download/* "$work/download/" 2>/dev/null || :
fi
if ! verified; then
    found=no
    for mirror in $(mirrors); do
        if fetch "$mirror"; then found=yes; break; fi
    done
    [ $found = yes ] || fail "none of the machine's mirrors gave the sources of $suite"
    verified || fail "the sources are not those that the patch is for: see $here/sources.sha256"
    rm -rf "$work/apt"
fi
say "the sources of QEMU $version have the checksums of sources.sha256"

# --- Unpacked and patched ---------------------------------------------------------

if ! cmp -s "$patch" "$work/applied.patch" || [ ! -d "$work/source" ]; then
    say "unpacking$([ "$patch" = /dev/null ] || echo ", and applying x-vmtune.patch")"
    rm -rf "$work/source.part"
    dpkg-source --no-check -x "$work/download/qemu_${version#*:}.dsc" "$work/source.part" >>"$log" 2>&1 ||
        fail "could not unpack"
    [ "$patch" = /dev/null ] ||
        (cd "$work/source.part" && patch -p1 -F0 --forward --batch <"$patch") >>"$log" 2>&1 ||
        fail "the patch does not apply"
    # After another patch: what is as before keeps its date (unpacking dates what Debian's patches
    # change anew), so that ninja builds only what is not.
    if [ -d "$work/source" ] && [ -e "$work/applied.patch" ]; then
        (
            cd "$work/source.part"
            {
                find . -type f -newer "$work/applied.patch"
                sed -n 's|^+++ b/|./|p' "$work/applied.patch" | cut -f1
            } | sort -u | while read -r file; do
                if cmp -s "$work/source/$file" "$file"; then
                    touch -r "$work/source/$file" "$file"
                elif [ -e "$file" ]; then
                    touch "$file"
                fi
            done
        )
    fi
    rm -rf "$work/source"
    mv "$work/source.part" "$work/source"
    cat "$patch" >"$work/applied.patch"
fi

# --- Built, into its own prefix -------------------------------------------------

if [ ! -x "$work/tools/bin/meson" ]; then
    say "getting meson"
    rm -rf "$work/tools"
    /usr/bin/python3 -m venv "$work/tools" >>"$log" 2>&1 || fail "could not make a Python environment"
    "$work/tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        -r "$here/meson.txt" >>"$log" 2>&1 || { rm -rf "$work/tools"; fail "could not get meson"; }
fi
configured="$folder $(echo $options)"
if [ "$(cat "$work/configured" 2>/dev/null)" != "$configured" ] || [ ! -e "$work/build/build.ninja" ]; then
    say "configuring"
    rm -rf "$work/build"
    mkdir "$work/build"
    # shellcheck disable=SC2086
    (cd "$work/build" && nice -n 19 ../source/configure --python="$work/tools/bin/python" \
        --prefix="$folder" --with-pkgversion="Debian $version $what" $options) >>"$log" 2>&1 ||
        fail "could not configure"
    echo "$configured" >"$work/configured"
fi
say "building with $(nproc) processors, 4 minutes on two idle ones; $log has the rest"
# The program alone: firmware, key maps and helpers are the distribution's.
make_it() { nice -n 19 ninja -C "$work/build" qemu-system-x86_64 9>&-; }
if [ -t 1 ]; then
    make_it || die "could not build"
else
    make_it >>"$log" 2>&1 || fail "could not build"
fi
# By a new name first: a QEMU that runs keeps the file that it was started from.
mkdir -p "$folder/bin"
cp "$work/build/qemu-system-x86_64" "$program.new"
mv "$program.new" "$program"
if "$program" -object help 2>&1 | grep -qw x-vmtune; then
    [ "$patch" != /dev/null ] || die "the QEMU that was built has x-vmtune, and should not"
else
    [ "$patch" = /dev/null ] || die "the QEMU that was built has no x-vmtune"
fi
echo "$key" >"$folder/built"
say "built in $(( ($(date +%s) - began + 30) / 60 )) minutes, $(du -sh "$folder" | cut -f1);" \
    "$work may go, but for the next build"
tell
