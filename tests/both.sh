#!/bin/sh
# Run the tests in a browser beside all others: they mostly wait for each other's pages. In a
# process of their own, for the browser's event loop stands in the way of other tests. Tests marked
# `long`, which take minutes or are one of many alike, are left to `make test-long`.
#   BIN=.venv/bin sh tests/both.sh [PYTEST-ARGUMENT]...
set -u
said=$(mktemp)
"$BIN/pytest" --durations 12 -m "not long" tests/web "$@" >"$said" 2>&1 &
web=$!
trap 'kill -INT $web 2>/dev/null; wait $web; rm -f "$said"' EXIT
trap 'exit 130' INT TERM

# File by file, those first that take longest; one process more than cores, as they wait a lot.
"$BIN/pytest" -n $(($(nproc) + 1)) --dist loadfile --no-loadscope-reorder --durations 25 \
    -m "not long" tests/e2e tests/contract tests/unit "$@"
others=$?
wait $web
browsers=$?
cat "$said"
exit $((others ? others : browsers))
