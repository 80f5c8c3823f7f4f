#!/bin/sh
# Install the Debian packages that vmtune's lab needs, and nothing twice.
#
#   bootstrap.sh           what running needs: QEMU, libvirt, a compiler
#   bootstrap.sh --tests   also what the tests need: PostgreSQL's programs, fio,
#                          QEMU's guest agent, sshd, polkit, SASL, OVMF, Prometheus,
#                          the browser Chromium (about 115 MB to download) and, on Debian 12,
#                          the suite's own QEMU 7.2 and libvirt 9, unpacked below
#                          .cache/ beside the installed ones
#
# Debian 12 gets QEMU 10 and libvirt 11 from the suite bookworm-backports on
# the mirror that the machine already uses. No service is started. Where it
# cannot install (no root, no Debian) it says what is missing and exits 1, or
# exits 0 when nothing is.
set -eu

say() { echo "bootstrap: $*"; }
die() { echo "bootstrap: $*" >&2; exit 1; }

tests=no
case "${1-}" in
    '') ;;
    --tests) tests=yes ;;
    *) die "unknown argument '$1'; usage: bootstrap.sh [--tests]" ;;
esac
[ $# -le 1 ] || die "too many arguments; usage: bootstrap.sh [--tests]"

here=$(cd "$(dirname "$0")" && pwd)
cache=${VMTUNE_CACHE:-$here/../../.cache}

virtual_packages='qemu-system-x86 libvirt-daemon-system libvirt-clients libvirt-dev'
plain_packages='gcc libc6-dev make pkg-config python3 python3-dev python3-venv
    iproute2 util-linux ca-certificates curl'
[ $tests = no ] || plain_packages="$plain_packages postgresql chromium fio ovmf
    qemu-guest-agent qemu-utils jq openssh-server openssl dbus-daemon polkitd sasl2-bin prometheus"
# The oldest versions that vmtune's own guest, lab and tests are run with.
qemu_floor='1:10.0'
libvirt_floor='11.0'

ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
[ ! -r /etc/os-release ] || . /etc/os-release

# --- Elsewhere than on Debian 12, 13 and forky as root: say what is missing --

missing_programs() {
    for pair in qemu-system-x86_64:QEMU libvirtd:libvirt virsh:libvirt-clients \
        gcc:gcc make:make pkg-config:pkg-config python3:python3 ip:iproute2 \
        unshare:util-linux curl:curl; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null ||
            printf ' %s (%s)' "${pair%%:*}" "${pair#*:}"
    done
    if command -v pkg-config >/dev/null && ! pkg-config --exists libvirt; then
        printf ' libvirt.pc (libvirt development files)'
    fi
    if [ $tests = yes ] && ! command -v initdb >/dev/null &&
        ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
        printf ' initdb (PostgreSQL server)'
    fi
    if [ $tests = yes ] && ! command -v chromium >/dev/null; then
        printf ' chromium (Chromium)'
    fi
    if [ $tests = yes ] && ! command -v fio >/dev/null; then
        printf ' fio (fio)'
    fi
    if [ $tests = yes ] && ! PATH=$PATH:/usr/sbin command -v qemu-ga >/dev/null; then
        printf ' qemu-ga (QEMU guest agent)'
    fi
    if [ $tests = yes ] && ! command -v qemu-img >/dev/null; then
        printf ' qemu-img (QEMU utilities)'
    fi
    if [ $tests = yes ] && ! command -v promtool >/dev/null; then
        printf ' promtool (Prometheus)'
    fi
    if [ $tests = yes ] && [ ! -x /usr/sbin/sshd ]; then
        printf ' sshd (OpenSSH server)'
    fi
    if [ $tests = yes ] && [ ! -x /usr/sbin/saslpasswd2 ]; then
        printf ' saslpasswd2 (Cyrus SASL)'
    fi
    if [ $tests = yes ] && [ ! -x /usr/lib/polkit-1/polkitd ]; then
        printf ' polkitd (polkit)'
    fi
    if [ $tests = yes ] && [ ! -e /usr/share/OVMF/OVMF_CODE_4M.fd ]; then
        printf ' OVMF_CODE_4M.fd (OVMF)'
    fi
}

case "$ID:$VERSION_CODENAME" in
    debian:bookworm | debian:trixie | debian:forky) ;;
    *)
        missing=$(missing_programs)
        [ -z "$missing" ] && exit 0
        die "this is not Debian 12, 13 or forky; install by hand:$missing"
        ;;
esac

# --- What is missing? --------------------------------------------------------

# Prints "VERSION" of an installed package, nothing of any other.
installed_version() {
    dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null |
        sed -n 's/^installed //p' | head -n 1
}

wanted_virtual='' wanted_plain=''
for package in $virtual_packages; do
    version=$(installed_version "$package")
    case $package in
        qemu-*) floor=$qemu_floor ;;
        *) floor=$libvirt_floor ;;
    esac
    if [ -z "$version" ] || dpkg --compare-versions "$version" lt "$floor"; then
        wanted_virtual="$wanted_virtual $package"
    fi
done
for package in $plain_packages; do
    [ -n "$(installed_version "$package")" ] || wanted_plain="$wanted_plain $package"
done

second=none
if [ $tests = yes ]; then
    if [ "$VERSION_CODENAME" = bookworm ]; then
        [ -e "$cache/qemu-7.2/.complete" ] && [ -e "$cache/libvirt-9/.complete" ] ||
            second=missing
    else
        say "Debian $VERSION_CODENAME has no QEMU 7.2 and no libvirt 9: tests over them are skipped"
    fi
fi

[ -n "$wanted_virtual$wanted_plain" ] || [ $second = missing ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
    what=$(echo $wanted_virtual $wanted_plain)
    [ -n "$what" ] || { say "QEMU 7.2 and libvirt 9 are not unpacked: only root's run does that"; exit 0; }
    from=''
    [ "$VERSION_CODENAME" != bookworm ] || [ -z "$wanted_virtual" ] ||
        from=" (QEMU and libvirt from bookworm-backports)"
    die "not root; run it as root, or install by hand:$from $what"
fi

# --- apt, with Debian's own sources only, and without starting services -------

work=$(mktemp -d)
policy=/usr/sbin/policy-rc.d
clusters=/etc/postgresql-common/createcluster.d/vmtune-bootstrap.conf
policy_changed=no clusters_changed=no
cleanup() {
    if [ $policy_changed = yes ]; then
        rm -f $policy
        [ ! -e "$work/policy-rc.d" ] && [ ! -L "$work/policy-rc.d" ] ||
            mv "$work/policy-rc.d" $policy
    fi
    if [ $clusters_changed = yes ]; then
        rm -f $clusters
        rmdir "$(dirname $clusters)" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

export DEBIAN_FRONTEND=noninteractive LC_ALL=C
log=$work/log
fail() { tail -n 20 "$log" >&2; die "$*"; }

# Rows "URI SUITE" of the machine's sources, deb822 and one-line alike.
sources() {
    apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' \
        'Created-By: Packages' 2>/dev/null | sort -u
}

# The suites that this Debian's sources may name instead of its codename. sid calls itself by the
# codename of what is to be the next release.
suites=stable
[ "$VERSION_CODENAME" != forky ] || suites='testing sid unstable'

# Mirrors of this Debian, best first: one that has the -updates suite as well
# is Debian's own, another may be a third party that borrowed the codename.
mirrors() {
    sources | awk -v suites="$VERSION_CODENAME $suites" '
        BEGIN { split(suites, list, " "); for (each in list) known[list[each]] = 1 }
        $2 in known { plain[$1] = 1 }
        sub(/-updates$/, "", $2) && $2 in known { updates[$1] = 1 }
        END {
            for (uri in plain) if (uri in updates) print uri
            for (uri in plain) if (!(uri in updates)) print uri
        }'
}

# Refresh the lists of Debian's suites. A third party's source that cannot be
# reached is not asked; all sources are, when Debian's cannot be told apart.
update_lists() {
    debian_mirror=$(mirrors | head -n 1)
    if [ -n "$debian_mirror" ]; then
        sources | awk -v mirror="$debian_mirror" -v suites="$VERSION_CODENAME $suites" '
            BEGIN { split(suites, list, " "); for (each in list) security[list[each] "-security"] = 1 }
            $1 == mirror || $2 in security { print "deb " $1 " " $2 " main" }' >"$work/debian.list"
        keyring=/usr/share/keyrings/debian-archive-keyring.gpg
        [ ! -r $keyring ] || sed -i "s|^deb |deb [signed-by=$keyring] |" "$work/debian.list"
        if apt-get update -q -o Dir::Etc::SourceList="$work/debian.list" \
            -o Dir::Etc::SourceParts=/dev/null -o APT::Get::List-Cleanup=0 \
            -o Acquire::Retries=3 -o APT::Update::Error-Mode=any >"$log" 2>&1; then
            return
        fi
    fi
    apt-get update -q -o Acquire::Retries=3 >>"$log" 2>&1 ||
        say "apt-get update had errors; going on with the lists there are"
}

add_backports() {
    if sources | grep -q ' bookworm-backports$'; then return; fi
    file=/etc/apt/sources.list.d/vmtune-backports.sources
    for mirror in $(mirrors); do
        {
            echo "# QEMU 10 and libvirt 11 for vmtune"
            echo "Types: deb"
            echo "URIs: $mirror"
            echo "Suites: bookworm-backports"
            echo "Components: main"
            [ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
                echo "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"
        } >$file
        if apt-get update -q -o Dir::Etc::SourceList=$file \
            -o Dir::Etc::SourceParts=/dev/null -o APT::Get::List-Cleanup=0 \
            -o Acquire::Retries=3 -o APT::Update::Error-Mode=any >"$log" 2>&1; then
            say "added bookworm-backports ($file)"
            return
        fi
        rm -f $file
    done
    fail "none of the machine's mirrors has bookworm-backports; add it by hand"
}

hold_services() {
    if [ -e $policy ] || [ -L $policy ]; then cp -a $policy "$work/policy-rc.d"; fi
    policy_changed=yes
    rm -f $policy
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
    # Tests make their own clusters; the package would create one and have it
    # started at every boot.
    if [ -z "$(installed_version postgresql-common)" ]; then
        mkdir -p "$(dirname $clusters)"
        echo 'create_main_cluster = false' >$clusters
        clusters_changed=yes
    fi
}

install() {
    apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-confold \
        "$@" >"$log" 2>&1
}

if [ -n "$wanted_virtual$wanted_plain" ]; then
    say "reading package lists"
    update_lists
    hold_services
    if [ -n "$wanted_plain" ]; then
        say "installing" $wanted_plain
        # shellcheck disable=SC2086
        install $wanted_plain || fail "could not install:$wanted_plain"
    fi
    if [ -n "$wanted_virtual" ]; then
        suite=''
        if [ "$VERSION_CODENAME" = bookworm ]; then
            add_backports
            suite='-t bookworm-backports'
        fi
        say "installing" $wanted_virtual
        # shellcheck disable=SC2086
        install $suite $wanted_virtual || fail "could not install:$wanted_virtual"
    fi
elif [ $second = missing ]; then
    update_lists
fi
[ $second = missing ] || exit 0

# --- The second QEMU and libvirt, unpacked -----------------------------------

# Unpack packages, and the libraries they need that the system has not got.
#   unpack FOLDER VERSION-PREFIX PACKAGE...
# A package of another source than the named ones comes in the suite's version.
unpack() {
    folder=$1 prefix=$2
    shift 2
    rm -rf "$folder"
    mkdir -p "$folder" "$work/debs"
    queue="$*" done=' '
    while [ -n "$queue" ]; do
        # shellcheck disable=SC2086
        set -- $queue
        package=$1
        shift
        queue="$*"
        case $done in *" $package "*) continue ;; esac
        done="$done$package "
        version=$(apt-cache madison "$package" |
            awk -F ' *[|] *' -v prefix="$prefix" '
                index($2, prefix) == 1 { print $2; exit }')
        rm -f "$work"/debs/*
        (cd "$work/debs" && apt-get download -q -o APT::Sandbox::User=root \
            "$package${version:+=$version}") >"$log" 2>&1 ||
            fail "could not download $package $version"
        dpkg -x "$work"/debs/*.deb "$folder"
        for needed in $(dpkg-deb -f "$work"/debs/*.deb Depends |
            tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:any//' | tr -d ' '); do
            case $needed in lib*) ;; *) continue ;; esac
            [ -n "$(installed_version "$needed")" ] || queue="$queue $needed"
        done
    done
}

libraries=usr/lib/x86_64-linux-gnu
if [ ! -e "$cache/qemu-7.2/.complete" ]; then
    say "unpacking QEMU 7.2 into .cache/qemu-7.2"
    unpack "$cache/qemu-7.2" 1:7.2 qemu-system-x86 qemu-system-common qemu-system-data
    [ -e /usr/share/seabios/bios-256k.bin ] || fail "the package seabios is not installed"
    # QEMU finds its own data beside itself; firmware and libraries it shares
    # with the installed one.
    cat >"$cache/qemu-7.2/qemu-system-x86_64" <<WRAPPER
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
export LD_LIBRARY_PATH="\$here/$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
exec "\$here/usr/bin/qemu-system-x86_64" -L "\$here/usr/share/qemu" -L /usr/share/seabios "\$@"
WRAPPER
    chmod 755 "$cache/qemu-7.2/qemu-system-x86_64"
    "$cache/qemu-7.2/qemu-system-x86_64" -version >"$log" 2>&1 ||
        fail "the unpacked QEMU 7.2 does not run"
    touch "$cache/qemu-7.2/.complete"
fi
if [ ! -e "$cache/libvirt-9/.complete" ]; then
    say "unpacking libvirt 9 into .cache/libvirt-9"
    unpack "$cache/libvirt-9" 9. libvirt0 libvirt-daemon libvirt-daemon-driver-qemu \
        libvirt-daemon-system libvirt-clients
    LD_LIBRARY_PATH="$cache/libvirt-9/$libraries" \
        "$cache/libvirt-9/usr/sbin/libvirtd" --version >"$log" 2>&1 ||
        fail "the unpacked libvirt 9 does not run"
    touch "$cache/libvirt-9/.complete"
fi
