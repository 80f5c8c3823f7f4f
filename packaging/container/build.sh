#!/bin/sh
# Build the container image of dist/vmtune_*.deb, or of Debian's PostgreSQL:  build.sh [--postgres] [TAG]
#
# As root, or as any user who may use buildah and has the base image. That is Debian's own, made here by
# debootstrap, so no registry of images is needed. BASE=docker.io/library/debian:bookworm-slim takes that
# one instead. VMTUNE_UID and VMTUNE_GID are the numbers of the service's user and group: those that the
# host knows, or its libvirt refuses them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
which=vmtune
[ "${1-}" != --postgres ] || { which=postgres; shift; }
case $which in
    vmtune) tag=${1:-localhost/vmtune} ;;
    postgres) tag=${1:-localhost/vmtune-postgres} ;;
esac
die() { echo "container: $*" >&2; exit 1; }
command -v buildah >/dev/null || die "buildah is not installed: apt-get install buildah"

deb=$(ls -t "$top"/dist/vmtune_*.deb 2>/dev/null | head -n 1)
[ -n "$deb" ] || die "there is no package in dist/: make deb"
case $deb in
    *+deb12_*) release=bookworm ;;
    *+deb13_*) release=trixie ;;
    *) die "$deb is for no release that is known" ;;
esac

work=$(mktemp -d /var/tmp/vmtune-container.XXXXXX)
trap 'rm -rf "$work"' EXIT
base=${BASE:-localhost/vmtune-base:$release}
if [ -z "${BASE-}" ] && ! buildah inspect --type image "$base" >/dev/null 2>&1; then
    [ "$(id -u)" -eq 0 ] || die "only root can make the base image: set BASE, or import it with buildah"
    echo "container: an empty Debian ($release)"
    sh "$top/packaging/deb/root.sh" "$release" "$work/root"
    rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    tar -C "$work/root" -c . >"$work/root.tar"
    printf 'FROM scratch\nADD root.tar /\nCMD ["/bin/sh"]\n' >"$work/Containerfile.base"
    buildah build --quiet --tag "$base" --file "$work/Containerfile.base" "$work" >/dev/null
    rm -rf "$work/root" "$work/root.tar"
fi
echo "container: $tag"
build() { # CONTEXT CONTAINERFILE, in the format that has health checks
    # shellcheck disable=SC2086 # several arguments
    buildah build --quiet --layers --format docker --build-arg "BASE=$base" --build-arg "UID=${VMTUNE_UID-}" \
        --build-arg "GID=${VMTUNE_GID-}" \
        --tag "$tag" ${BUILDAH_OPTIONS-} --file "$2" "$1" >/dev/null
}
if [ "$which" = postgres ]; then
    build "$here/postgres" "$here/postgres/Containerfile"
else
    mkdir "$work/context"
    cp "$deb" "$work/context/vmtune.deb"
    build "$work/context" "$here/Containerfile"
fi
