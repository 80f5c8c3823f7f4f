#!/bin/sh
# vmtune's hook for libvirt. Before an incoming live migration, it asks the vmtune service for
# the values that the VM's profile sets on the destination QEMU: the service of this host by its
# socket, or the one at a URL by HTTPS.
#
# libvirt runs this hook at every step of every VM's life cycle. It handles one step and exits
# at once in all others. It never calls libvirt, and takes at most limit_ms. If the service is
# down, slow or wrong, the migration continues without the hook, unless on_failure is refuse.
# `vmtune install-hook` writes the next seven lines; you may edit them.
socket=/run/vmtune/vmtune.sock
url=
token_file=
ca_file=
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

config=
if [ -z "$url" ]; then
    [ -S "$socket" ] || failed "the service is not running: there is no socket $socket"
    where=$socket
    set -- --unix-socket "$socket" http://vmtune/api/v1/hooks/qemu
else
    where=$url
    token=
    { IFS= read -r token <"$token_file"; } 2>/dev/null
    case $token in
        '' | *[!A-Za-z0-9._~+/=-]*) failed "there is no token in $token_file" ;;
    esac
    config="header = \"Authorization: Bearer $token\""
    set -- "$url/api/v1/hooks/qemu"
    # curl 8.23 calls a file that is missing an option badly used.
    [ -z "$ca_file" ] || [ -r "$ca_file" ] || failed "there is no certificate in $ca_file"
    # The system's certificates do not count then.
    [ -z "$ca_file" ] || set -- --cacert "$ca_file" --capath /dev/null "$@"
fi

# The start of this shell and of curl is part of the limit. The leading 1 keeps the zeros.
left=$((1000000 + limit_ms - 50))
seconds=${left%???}
limit=${seconds#1}.${left#"$seconds"}

# Buffered until complete: half a domain would end the migration. The status is last. The token is
# in no process's arguments.
answer=$(exec curl -qsf --proto =http,https --noproxy '*' --max-time "$limit" -K /dev/fd/3 \
    -H 'Content-Type: application/xml' -H 'Expect:' --data-binary @- -w '%{http_code}' "$@" \
    3<<EOF 2>/dev/null
$config
EOF
)
case $? in
    0) ;;
    6) failed "the name of $where is not known" ;;
    7) failed "the service does not listen at $where" ;;
    22)
        case $answer in
            *401 | *403) failed "the service refuses the token in $token_file" ;;
        esac
        failed "the service answered with an error; see 'vmtune audit'"
        ;;
    28) failed "the service did not answer within $limit_ms ms" ;;
    35 | 60) failed "the service at $where has no certificate that is trusted" ;;
    77) failed "there is no certificate in $ca_file" ;;
    127) failed "curl is not installed" ;;
    *) failed "the service did not answer as expected" ;;
esac

case $answer in
    204) ;; # unchanged
    '<domain'[!a-zA-Z0-9]*'</domain>200') printf '%s\n' "${answer%200}" ;;
    *) failed "the service's answer is not a domain" ;;
esac
exit 0
# vmtune-hook sha256=22d871487957cbacf5e26c80c56bc831b603abca796cf13c34b633eb72892e43
