#!/bin/sh
# Run the tests of what is stored and queued against each PostgreSQL that is to be had: as root,
# minutes for each.
#   sh tests/releases/databases.sh [PYTEST-ARGUMENT]...    (POSTGRES="16 18": these alone)
# Says at the end what was tried.
set -u
top=$(readlink -f "$(dirname "$0")/../..")
log=$(mktemp)
ran=$(mktemp)
trap 'rm -f "$log" "$ran"' EXIT
trap 'exit 130' INT

failed=0
for version in ${POSTGRES:-15 16 17 18}; do
    if ! programs=$(sh "$top/tests/releases/postgres.sh" "$version"); then
        echo "PostgreSQL $version: not tried: its programs cannot be had" | tee -a "$log"
        failed=1
        continue
    fi
    exact=$("$programs/postgres" --version)
    echo "$exact"
    (cd "$top" && PATH=$programs:$PATH .venv/bin/pytest -p no:cacheprovider -q -n 2 --dist loadfile \
        -k postgresql tests/contract/store tests/contract/test_jobs.py tests/unit/storage/test_failures.py "$@") \
        >"$ran" 2>&1 || failed=1
    cat "$ran"
    echo "$exact: $(tail -n 1 "$ran")" >>"$log"
done
echo
cat "$log"
exit $failed
