#!/bin/sh
# vmtune's hook for libvirt. Before an incoming live migration, it asks the vmtune service of
# this host for the values that the VM's profile sets on the destination QEMU.
#
# libvirt runs this hook at every step of every VM's life cycle. It handles one step and exits
# at once in all others. It never calls libvirt, and takes at most limit_ms. If the service is
# down, slow or wrong, the migration continues without the hook, unless on_failure is refuse.
# `vmtune install-hook` writes the next four lines; you may edit them.
socket=/run/vmtune/vmtune.sock
limit_ms=1000
on_failure=continue
came_with=

[ "${2-} ${3-}" = 'migrate begin' ] || exit 0

failed() {
    if [ "$on_failure" != refuse ]; then
        echo "vmtune: $1; the migration continues without the profile" >&2
        exit 0
    fi
    echo "vmtune: $1; the hook was installed with --fail-closed, so it refuses the VM" >&2
    exit 1
}

[ -S "$socket" ] || failed "the service is not running: there is no socket $socket"

# The start of this shell and of curl is part of the limit. The leading 1 keeps the zeros.
left=$((1000000 + limit_ms - 50))
seconds=${left%???}
limit=${seconds#1}.${left#"$seconds"}

# Buffered until complete: half a domain would end the migration. The status is last.
answer=$(exec curl -qsf --max-time "$limit" --unix-socket "$socket" \
    -H 'Content-Type: application/xml' -H 'Expect:' --data-binary @- -w '%{http_code}' \
    http://vmtune/api/v1/hooks/qemu 2>/dev/null)
case $? in
    0) ;;
    7) failed "the service does not listen at $socket" ;;
    22) failed "the service answered with an error; see 'vmtune audit'" ;;
    28) failed "the service did not answer within $limit_ms ms" ;;
    127) failed "curl is not installed" ;;
    *) failed "the service did not answer as expected" ;;
esac

case $answer in
    204) ;; # unchanged
    '<domain'[!a-zA-Z0-9]*'</domain>200') printf '%s\n' "${answer%200}" ;;
    *) failed "the service's answer is not a domain" ;;
esac
exit 0
# vmtune-hook sha256=64e2e5a004b6cdb5a7154a42817b3304ebd1e39ad545d8b411dc824cbec0c399
