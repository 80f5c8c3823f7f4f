#!/bin/sh
# Build dist/vmtune_VERSION+debN_ARCH.deb:  build.sh [RELEASE]
#
# For Debian 12 (bookworm), 13 (trixie) or forky, which is to be 14 and installs on sid, too; without
# RELEASE for this machine's. A package is for one release: its libraries are compiled for that
# release's Python. It is built in an empty Debian of that release, so that it comes out the same on
# every machine and asks for no newer libvirt than that release has. `make deb` makes the wheel
# first, from which this takes everything.
set -eu

die() { echo "deb: $*" >&2; exit 1; }
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/packaging/deb
bin=$top/.venv/bin
VERSION_CODENAME=''
# shellcheck source=/dev/null
[ ! -r /etc/os-release ] || . /etc/os-release
release=${1:-$VERSION_CODENAME}
case $release in
    bookworm) number=12 python=python3.11 ;;
    trixie) number=13 python=python3.13 ;;
    forky) number=14 python=python3.14 ;;
    *) die "there is no package for '$release'; say RELEASE=bookworm, RELEASE=trixie or RELEASE=forky" ;;
esac
version=$("$bin/python" -c 'import vmtune; print(vmtune.__version__)')
wheel=$top/dist/vmtune-$version-py3-none-any.whl
[ -e "$wheel" ] || die "there is no $wheel; run: make deb"

work=$(mktemp -d -p "${TMPDIR:-/var/tmp}" vmtune-deb.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- What goes into it: from the wheel, so that it is the same ----------------

tree=$work/vmtune
mkdir -p "$tree/hook" "$tree/completion" "$work/wheel"
cp -R "$here/debian" "$tree/debian"
cp "$here/environment.sh" "$here/copyright.py" "$tree"
cp "$top/README.md" "$top/web/package-lock.json" "$wheel" "$tree"
"$bin/python" -m zipfile -e "$wheel" "$work/wheel"
install -m 755 "$work/wheel/vmtune/hook/qemu.sh" "$tree/hook/vmtune"
run() { (cd "$work" && PYTHONPATH=$work/wheel "$bin/python" -m "$@"); }
run vmtune.client.manual "$tree/manual"
run vmtune completion bash >"$tree/completion/vmtune"
mkdir "$tree/settings"
# shellcheck disable=SC2046
run vmtune.config.template $(cat "$here/settings") >"$tree/settings/vmtune.toml"
"$bin/python" "$top/packaging/locked.py" --extra oidc --extra otel >"$tree/runtime.lock"
"$bin/python" "$top/packaging/locked.py" setuptools >"$tree/compiling.lock"
cp "$top/packaging/systemd/vmtune.service" "$tree/debian/vmtune.service"
cp "$top/packaging/systemd/vmtune.socket" "$tree/debian/vmtune.socket"
cp "$top/packaging/systemd/vmtune-host.service" "$tree/debian/vmtune.vmtune-host.service"
for kind in path service; do
    cp "$top/packaging/systemd/vmtune-limits.$kind" "$tree/debian/vmtune.vmtune-limits.$kind"
done
mkdir "$tree/slice"
cp "$top/packaging/systemd/vmtune.slice" "$tree/slice/vmtune.slice"
cp -R "$top/packaging/monitoring" "$tree/monitoring"
mkdir "$tree/sysusers"
cp "$top/packaging/sysusers.d/vmtune.conf" "$tree/sysusers/vmtune.conf"
cat >"$tree/debian/changelog" <<END
vmtune ($version+deb$number) $release; urgency=medium

  * vmtune $version for Debian $number.

 -- vmtune <vmtune@localhost>  $(LC_ALL=C date -R -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y "$wheel")}")
END

# --- Build it -----------------------------------------------------------------

echo "deb: an empty Debian $number"
sh "$here/root.sh" "$release" "$work/root" "$python-minimal" python3 python3-dev python3-venv \
    build-essential pkg-config libvirt-dev debhelper ca-certificates
mv "$tree" "$work/root/vmtune"
cp "$bin/uv" "$work/root/usr/local/bin/uv"
mkdir "$work/root/cache"
echo "deb: vmtune $version and its environment of $python"
# Its mounts and processes end with it.
unshare --mount --pid --fork --kill-child sh -euc '
    root=$1 cache=$2
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    [ ! -d /etc/ssl/certs ] || mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
    mount --bind "$cache" "$root/cache"
    export HOME=/root PATH=/usr/local/bin:/usr/bin:/usr/sbin LC_ALL=C.UTF-8 UV_CACHE_DIR=/cache
    unset VIRTUAL_ENV PYTHONPATH
    exec chroot "$root" sh -c "cd /vmtune && exec dpkg-buildpackage --build=binary --no-sign"
    ' sh "$work/root" "$("$bin/uv" cache dir)" >"$work/log" 2>&1 || {
    tail -n 40 "$work/log" | cut -c 1-400 >&2
    die "it could not be built"
}
for deb in "$work"/root/*.deb; do
    mkdir -p "$top/dist"
    cp "$deb" "$top/dist/"
    echo "deb: dist/$(basename "$deb"), $(du -h "$deb" | cut -f 1)"
done
