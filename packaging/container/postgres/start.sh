#!/bin/sh
# Make the database if there is none, then serve it.
set -eu
export PGDATA=${PGDATA:-/var/lib/postgresql/data}
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
user=${POSTGRES_USER:-postgres}
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?is not set}"
    password=$(mktemp)
    printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
    # shellcheck disable=SC2086 # several arguments
    initdb --username="$user" --pwfile="$password" --encoding=UTF8 ${POSTGRES_INITDB_ARGS-} >/dev/null
    rm "$password"
    pg_ctl --silent --wait --options="-c listen_addresses=''" start
    PGPASSWORD=$POSTGRES_PASSWORD createdb --username="$user" "${POSTGRES_DB:-$user}"
    pg_ctl --silent --wait --mode=fast stop
fi
exec postgres "$@"
