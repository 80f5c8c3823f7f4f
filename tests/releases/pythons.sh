#!/bin/sh
# Run the unit tests by each Python that is to be had, in an environment of its own of the locked
# packages; libvirt-python is compiled for it. As root, minutes for each.
#   sh tests/releases/pythons.sh [PYTEST-ARGUMENT]...    (PYTHONS="3.12 3.14": these alone)
# A Python is sought on the PATH and where pyenv keeps them; what this machine lacks comes with a
# Debian release, unpacked into .cache/python-VERSION/root. Says at the end what was tried.
set -u
top=$(readlink -f "$(dirname "$0")/../..")
uv=$top/.venv/bin/uv
log=$(mktemp)
mkdir -p "$top/.cache"
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT

# Where the interpreter is; nothing when this machine has none.
interpreter() {
    for found in "$(command -v "python$1")" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if [ -x "$found" ] && "$found" -c "import sys; assert '%d.%d' % sys.version_info[:2] == '$1'" 2>/dev/null
        then
            echo "$found"
            return
        fi
    done
}

# A release with that Python, and what compiles libvirt-python and runs the tests.
root() {
    case $1 in
        3.11) suite=bookworm ;;
        3.13) suite=trixie ;;
        3.14) suite=sid ;;
        *) echo "no Debian release has Python $1, nor this machine"; return 1 ;;
    esac
    root=$top/.cache/python-$1/root
    [ ! -e "$root.complete" ] || return 0
    command -v debootstrap >/dev/null || { echo "debootstrap is not installed: apt-get install debootstrap"; return 1; }
    rm -rf "$root"
    mkdir -p "$root"
    {
        debootstrap --variant=minbase "$suite" "$root" &&
            printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" &&
            chmod 755 "$root/usr/sbin/policy-rc.d" &&
            env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive \
                chroot "$root" apt-get -qy install --no-install-recommends "python$1" "python$1-dev" \
                "python$1-venv" gcc libc6-dev make pkg-config libvirt-dev libvirt-clients ca-certificates \
                iproute2 util-linux git curl jq openssl
    } >"$root.log" 2>&1 || { tail -3 "$root.log"; return 1; }
    rm -rf "$root"/var/cache/apt/archives/*.deb
    touch "$root.complete"
}

# Run a command as this machine does, or in that root, with this checkout and these packages in it.
within() {
    root=$1
    shift
    if [ -z "$root" ]; then
        "$@"
        return
    fi
    # shellcheck disable=SC2016  # the shell within expands them
    unshare --mount --propagation private sh -euc '
        root=$1 top=$2 cache=$3
        shift 3
        for folder in /proc /sys /dev "$top" "$cache"; do
            mkdir -p "$root$folder"
            mount --rbind "$folder" "$root$folder"
        done
        mount -t tmpfs tmpfs "$root/tmp"
        cp -L /etc/resolv.conf "$root/etc/"
        # The packages come as they come to this machine, which may trust more than its release does.
        [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
            cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
        exec chroot "$root" /bin/sh -euc "cd \"\$1\"; shift; exec \"\$@\"" sh "$top" "$@"
    ' sh "$root" "$top" "$(readlink -f "$("$uv" cache dir)")" "$@"
}

failed=0
for version in ${PYTHONS:-3.11 3.12 3.13 3.14}; do
    place=$top/.cache/python-$version
    python=$(interpreter "$version")
    where=
    if [ -z "$python" ]; then
        if why=$(root "$version"); then
            where=$place/root
            python=/usr/bin/python$version
        else
            echo "Python $version: not tried: $why" | tee -a "$log"
            continue
        fi
    fi
    echo "Python $version: $python${where:+ of $where}"
    export UV_CACHE_DIR="$("$uv" cache dir)"
    if [ ! -e "$place/venv/.ready" ] || [ "$top/requirements.lock" -nt "$place/venv/.ready" ]; then
        within "$where" "$uv" venv --quiet --clear --python "$python" "$place/venv" &&
            within "$where" "$uv" pip sync --quiet --python "$place/venv/bin/python" --require-hashes \
                "$top/requirements.lock" &&
            within "$where" "$uv" pip install --quiet --python "$place/venv/bin/python" --no-deps \
                --editable "$top" &&
            touch "$place/venv/.ready" || {
            echo "Python $version: the locked packages cannot be installed" | tee -a "$log"
            failed=1
            continue
        }
    fi
    ran=$(mktemp)
    (cd "$top" && within "$where" "$place/venv/bin/pytest" -p no:cacheprovider -q -n "$(nproc)" \
        --dist worksteal tests/unit "$@") >"$ran" 2>&1 || failed=1
    cat "$ran"
    exact=$(within "$where" "$place/venv/bin/python" -c 'import platform; print(platform.python_version())')
    echo "Python $exact: $(tail -n 1 "$ran")" >>"$log"
    rm -f "$ran"
done
echo
cat "$log"
exit $failed
