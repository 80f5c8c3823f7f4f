#!/bin/sh
# Make a folder with an empty Debian in it:  root.sh RELEASE FOLDER [PACKAGE...]
#
# From the mirror that this machine uses. What is downloaded is kept in .cache/debs. Nothing stays
# mounted, whatever happens: what it mounts, it mounts where no other process sees it.
set -eu

die() { echo "root: $*" >&2; exit 1; }
[ $# -ge 2 ] || die "usage: root.sh RELEASE FOLDER [PACKAGE...]"
[ "$(id -u)" -eq 0 ] || die "not root: a Debian folder has files of many users"
release=$1 folder=$2
shift 2

command -v debootstrap >/dev/null || {
    echo "root: installing debootstrap"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap \
        >/dev/null || die "could not install debootstrap; run apt-get update, or install it by hand"
}
script=/usr/share/debootstrap/scripts/$release
# Of a release that is newer than itself, debootstrap knows nothing; it is made as sid is.
[ -e "$script" ] || [ "$release" != forky ] || script=$(dirname "$script")/sid
[ -e "$script" ] || die "debootstrap knows no release $release; there are bookworm, trixie, forky and sid"

# The mirror that has this machine's own -updates suite is Debian's, and has every release.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 ~ /^[a-z]+-updates$/ { print $1; exit }')
cache=${VMTUNE_CACHE:-$(cd "$(dirname "$0")/../.." && pwd)/.cache}/debs
mkdir -p "$cache"

log=$folder.log
mkdir -p "$folder"
# Without syncing: it takes a third of the time, and what is cut short is made anew.
unshare --mount --pid --fork --kill-child sh -euc '
    release=$1 folder=$2 cache=$3 mirror=$4 script=$5
    shift 5
    debootstrap --variant=minbase --cache-dir="$cache" "$release" "$folder" "$mirror" "$script"
    [ $# -gt 0 ] || exit 0
    mount -t proc proc "$folder/proc"
    mount --bind "$cache" "$folder/var/cache/apt/archives"
    export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin
    # Without it there are the lists that debootstrap left: those of forky and sid say until when
    # they are valid, and apt takes no older ones from a mirror that stands still.
    chroot "$folder" apt-get update -q || echo "root: going on with the lists of debootstrap"
    chroot "$folder" apt-get install -y -q --no-install-recommends \
        -o Dpkg::Options::=--force-unsafe-io "$@"
    ' sh "$release" "$folder" "$cache" "$mirror" "$script" "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "it could not be made"
}
rm -f "$log"
