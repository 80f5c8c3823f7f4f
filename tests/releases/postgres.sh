#!/bin/sh
# Put PostgreSQL of a version that this machine lacks into .cache/postgresql-VERSION: as root, a minute.
#   sh tests/releases/postgres.sh VERSION       (15, 16, 17 or 18; prints the folder of its programs)
# Each is Debian's own and runs with its release's libraries; no release has 16, so that one is
# from a wheel of PyPI.
set -eu
version=$1
cache=$(readlink -f "$(dirname "$0")/../..")/.cache/postgresql-$version
case $version in
    15) suite=bookworm ;;
    16) suite= ;;
    17) suite=trixie ;;
    18) suite=sid ;;
    *) echo "no release of PostgreSQL $version is known here" >&2; exit 1 ;;
esac
installed=/usr/lib/postgresql/$version/bin
[ ! -x "$installed/initdb" ] || { echo "$installed"; exit 0; }
[ -n "$suite" ] && bin=$cache/root$installed || bin=$cache/pgserver/pginstall/bin
[ ! -e "$cache/.complete" ] || { echo "$bin"; exit 0; }

rm -rf "$cache"
mkdir -p "$cache"
trap 'rm -rf "$cache"' EXIT INT TERM
if [ -z "$suite" ]; then
    # Its programs need no Python: any of its wheels has them.
    wheel='pgserver==0.1.4'
    hash=1a5d07c61d51f2abfef4ef61e2ef5cd014b994f7e09de8d3c140d2cf370e84a8
    printf '%s --hash=sha256:%s\n' "$wheel" "$hash" >"$cache/wanted"
    "${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary :all: --python-version 3.12 --dest "$cache" -r "$cache/wanted" >&2
    "${PYTHON:-python3}" -m zipfile -e "$cache"/*.whl "$cache"
    chmod 755 "$bin"/*
else
    command -v debootstrap >/dev/null || {
        echo "debootstrap is not installed: apt-get install debootstrap" >&2
        exit 1
    }
    debootstrap --variant=minbase --include="postgresql-$version" "$suite" "$cache/root" \
        >"$cache/log" 2>&1 || {
        tail -5 "$cache/log" >&2
        exit 1
    }
    # initdb starts the postgres beside it, so each program's place is taken by a script.
    for program in postgres initdb; do
        mv "$bin/$program" "$bin/$program.$suite"
        cat >"$bin/$program" <<WRAPPER
#!/bin/sh
libraries=$cache/root/usr/lib/x86_64-linux-gnu
exec "\$libraries/ld-linux-x86-64.so.2" --library-path "\$libraries" "$bin/$program.$suite" "\$@"
WRAPPER
        chmod 755 "$bin/$program"
    done
fi
"$bin/postgres" --version >&2
touch "$cache/.complete"
trap - EXIT INT TERM
echo "$bin"
