#!/bin/sh
# Put a root of another Debian release into .cache/root-SUITE, for lab machines: as root, minutes.
#   sh tests/releases/root.sh [SUITE]       (sid unless it is named)
# It has libvirt, QEMU, sshd, polkit and SASL.
set -eu
suite=${1:-sid}
cache=$(readlink -f "$(dirname "$0")/../..")/.cache/root-$suite
[ ! -e "$cache.complete" ] || exit 0
command -v debootstrap >/dev/null || {
    echo "debootstrap is not installed: apt-get install debootstrap" >&2
    exit 1
}
packages=$(tr '\n' ' ' <<'END'
libvirt-daemon-system
libvirt-clients
qemu-system-x86
openssh-server
openssh-client
polkitd
dbus-daemon
sasl2-bin
libsasl2-modules
openssl
curl
iproute2
hostname
mount
ca-certificates
END
)
rm -rf "$cache"
mkdir -p "$cache"
trap 'rm -rf "$cache"' EXIT INT TERM
# debootstrap orders few dependencies rightly; apt all of them. Nothing is started by it.
{
    debootstrap --variant=minbase "$suite" "$cache"
    printf '#!/bin/sh\nexit 101\n' >"$cache/usr/sbin/policy-rc.d"
    chmod 755 "$cache/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2086  # a list
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        chroot "$cache" apt-get -qy install --no-install-recommends $packages
} >"$cache.log" 2>&1 || {
    tail -20 "$cache.log" >&2
    exit 1
}
rm -rf "$cache"/var/cache/apt/archives/*.deb
touch "$cache.complete"
trap - EXIT INT TERM
