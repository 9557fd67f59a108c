#!/bin/sh
# Writes .sqlx, by which the queries are checked where no database is. With --check it writes nothing, and fails if
# .sqlx is not what it would write, or clippy finds anything: the macros run while clippy does, so that all is compiled but
# once. Needs no sqlx-cli: the macros themselves write what they learn from a database.
set -eu
cd "$(dirname "$0")/.."

testdb=${CARGO_TARGET_DIR:-target}/debug/testdb
# A changed query keeps the library, and so testdb, from compiling until this script has run: then the testdb of the
# last build will do.
if ! cargo build --quiet --bin testdb 2>/dev/null && [ ! -x "$testdb" ]; then
    echo "sqlx: testdb has never been built. Put your changes aside (git stash), run 'cargo build --bin testdb'," >&2
    echo "      take them back (git stash pop), and try again." >&2
    exit 1
fi

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
trap 'exit 130' INT TERM
if [ "${1:-}" = --check ]; then
    set -- --check cargo clippy --locked --quiet --all-targets -- -D warnings
else
    set -- --write cargo check --quiet --all-targets
fi
mode=$1
shift
# The macros run only when the crate is compiled. What is built of it already stays good: its source is as old as before.
touch -r src/lib.rs "$fresh/age"
touch src/lib.rs
status=0
SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$fresh "$testdb" --migrate migrations "$@" || status=$?
touch -r "$fresh/age" src/lib.rs
rm "$fresh/age"
[ $status = 0 ] || exit $status

if [ "$mode" = --write ]; then
    mkdir -p .sqlx
    rm -f .sqlx/query-*.json
    find "$fresh" -name 'query-*.json' -exec cp {} .sqlx/ \;
elif ! diff -r "$fresh" .sqlx >&2; then
    echo "sqlx: .sqlx is out of date: run 'make sqlx' and commit the result" >&2
    exit 1
fi
