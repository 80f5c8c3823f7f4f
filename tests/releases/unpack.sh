#!/bin/sh
# Put the QEMU of another Debian release into .cache/qemu-SUITE, for tests: as root, some 30 s.
#   sh tests/releases/unpack.sh [SUITE]       (sid unless it is named)
# It runs with its own release's libraries and firmware, on this machine's files.
set -eu
suite=${1:-sid}
cache=$(readlink -f "$(dirname "$0")/../..")/.cache/qemu-$suite
[ ! -e "$cache/.complete" ] || exit 0
command -v debootstrap >/dev/null || {
    echo "debootstrap is not installed: apt-get install debootstrap" >&2
    exit 1
}
rm -rf "$cache"
mkdir -p "$cache"
trap 'rm -rf "$cache"' EXIT INT TERM
debootstrap --variant=minbase --include=qemu-system-x86 "$suite" "$cache/root" >"$cache/log" 2>&1 || {
    tail -5 "$cache/log" >&2
    exit 1
}
cat >"$cache/qemu-system-x86_64" <<'WRAPPER'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root
libraries=$root/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="$libraries/qemu"
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" \
    "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" \
    -L "$root/usr/lib/ipxe/qemu" "$@"
WRAPPER
chmod 755 "$cache/qemu-system-x86_64"
"$cache/qemu-system-x86_64" -version
touch "$cache/.complete"
trap - EXIT INT TERM
