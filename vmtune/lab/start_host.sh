#!/bin/sh
# Start libvirtd as one host of the lab. Run inside the host's network
# namespace and in mount and UTS namespaces of its own; returns when libvirtd
# takes connections.
#   start_host.sh NAME HOST-FOLDER LAB-FOLDER LIBVIRTD [UNPACKED-LIBVIRT]
# With VMTUNE_LAB_MACHINE=yes the host gets a root of its own, an overlay of
# VMTUNE_LAB_BASE, and sshd and polkit.
set -eu
name=$1 host=$2 lab=$3 libvirtd=$4 unpacked=${5-}

hostname "$name"
if [ "${VMTUNE_LAB_MACHINE-}" = yes ]; then
    new=$host/root
    mount -t overlay "$name" -o "lowerdir=$VMTUNE_LAB_BASE,upperdir=$host/upper,workdir=$host/work" "$new"
    for folder in proc sys dev; do mount --rbind "/$folder" "$new/$folder"; done
    # The lab's folder is what both hosts share, as they would share storage.
    mkdir -p "$new$lab"
    mount --bind "$lab" "$new$lab"
    cd "$new"
    pivot_root . .
    umount -l .
    cd /
fi
[ -e /etc/hosts ] || : >/etc/hosts
mount --bind "$host/hosts" /etc/hosts
for pair in etc:/etc/libvirt lib:/var/lib/libvirt cache:/var/cache/libvirt log:/var/log/libvirt; do
    mount --bind "$host/${pair%%:*}" "${pair#*:}"
done
if [ -n "$unpacked" ]; then
    # Modules, helpers and tables are looked up by fixed paths.
    for folder in "$unpacked"/usr/lib/*/libvirt "$unpacked/usr/lib/libvirt" \
        "$unpacked/usr/share/libvirt"; do
        [ ! -d "$folder" ] || mount --bind "$folder" "${folder#"$unpacked"}"
    done
    for folder in "$unpacked"/usr/lib/*-linux-gnu; do
        export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    done
fi
# All of /run: a host of its own has no system bus, whose services would
# otherwise be told of this host's VMs. The lab's folder may lie in it.
case $lab in
    /run/*)
        mkdir -p "$host/run/${lab#/run/}"
        mount --bind "$lab" "$host/run/${lab#/run/}"
        mount --rbind "$host/run" /run
        ;;
    *) mount --bind "$host/run" /run ;;
esac
if [ "${VMTUNE_LAB_MACHINE-}" = yes ]; then
    /usr/sbin/sshd
    dbus-daemon --config-file /etc/dbus-1/lab.conf
    /usr/lib/polkit-1/polkitd --no-debug </dev/null >/dev/null 2>&1 &
fi
case $libvirtd in
    */virtqemud)
        # It listens on no network: virtproxyd, from beside it, does that for it.
        "$libvirtd" --daemon --pid-file /run/virtqemud.pid
        exec "${libvirtd%/*}/virtproxyd" --daemon --pid-file /run/virtproxyd.pid
        ;;
esac
exec "$libvirtd" --daemon --listen --pid-file /run/libvirtd.pid
