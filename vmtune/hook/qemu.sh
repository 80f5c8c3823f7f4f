#!/bin/sh
# vmtune's hook for libvirt. Before a VM arrives here by live migration, it asks the vmtune
# service of this host what the VM's profile gives to the QEMU that will receive it.
#
# libvirt runs it at every step of every VM's life. It has a part in one, and ends at once in
# all others. It never calls libvirt, and takes no longer than limit_ms. Where the service is
# down, slow or wrong, the migration goes on as if this file were not here, unless on_failure
# is refuse. `vmtune install-hook` writes the next four lines; they may be edited by hand too.
socket=/run/vmtune/vmtune.sock
limit_ms=1000
on_failure=continue
came_with=

[ "${2-} ${3-}" = 'migrate begin' ] || exit 0

failed() {
    if [ "$on_failure" != refuse ]; then
        echo "vmtune: $1; the migration goes on without its profile" >&2
        exit 0
    fi
    echo "vmtune: $1; the hook was installed with --fail-closed, so the VM is not let in" >&2
    exit 1
}

[ -S "$socket" ] || failed "the service does not run: there is no socket $socket"

# The start of this shell and of curl is part of the limit. The leading 1 keeps the zeros.
left=$((1000000 + limit_ms - 50))
seconds=${left%???}
limit=${seconds#1}.${left#"$seconds"}

# Kept until all of it has come: half a domain would end the migration. The status is last.
answer=$(exec curl -qsf --max-time "$limit" --unix-socket "$socket" \
    -H 'Content-Type: application/xml' -H 'Expect:' --data-binary @- -w '%{http_code}' \
    http://vmtune/api/v1/hooks/qemu 2>/dev/null)
case $? in
    0) ;;
    7) failed "the service does not listen at $socket" ;;
    22) failed "the service answered with an error, which 'vmtune audit' shows" ;;
    28) failed "the service did not answer within $limit_ms ms" ;;
    127) failed "curl is not installed" ;;
    *) failed "the service did not answer as expected" ;;
esac

case $answer in
    204) ;; # as it is
    '<domain'[!a-zA-Z0-9]*'</domain>200') printf '%s\n' "${answer%200}" ;;
    *) failed "the service's answer is no domain" ;;
esac
exit 0
# vmtune-hook sha256=5848b331946bf549b33b1085e1c817f11d3d85b79e107eebd0d161217d46cb44
