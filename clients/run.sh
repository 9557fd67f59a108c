#!/bin/sh
# Generates a client in each language from openapi/openapi.json, has its compiler check it as strictly as it can, and plays
# a game of each ruleset with it on a real server. Prints a line for each; fails if anything did.
#
#     clients/run.sh [--url URL] [typescript] [python] [rust]
#
# Without languages all of them. Without a URL a server is started for the run, on a database and a port of its own:
# TAVOLA_BIN, or else target/debug/tavola, which is built.
set -u
cd "$(dirname "$0")/.." || exit 1

say() { printf 'clients: %s\n' "$*" >&2; }

url='' languages=''
while [ $# -gt 0 ]; do
    case $1 in
        --url)
            [ $# -ge 2 ] || { say '--url needs a URL'; exit 2; }
            url=${2%/}
            shift
            ;;
        typescript | python | rust) languages="$languages $1" ;;
        *)
            say "'$1' is neither --url nor one of the languages typescript, python, rust"
            exit 2
            ;;
    esac
    shift
done
[ -n "$languages" ] || languages='typescript python rust'

work=$(mktemp -d) || exit 1
server=
finish() {
    status=$?
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null
        if ! wait "$server"; then
            say 'the server did not stop as it should'
            status=1
        fi
    fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The server's limits are for people who share it; one player in a hurry is what this is about.
start_server() {
    binary=${TAVOLA_BIN:-}
    if [ -z "$binary" ]; then
        cargo build --quiet --locked --bin tavola || return 1
        binary=${CARGO_TARGET_DIR:-target}/debug/tavola
    fi
    # The private PostgreSQL has an account of its own if we are root, and must be able to get there.
    chmod 711 "$work"
    env -u DATABASE_URL TAVOLA_ADDR=127.0.0.1:0 TAVOLA_LOG=warn TAVOLA_LOG_FORMAT=text \
        TAVOLA_LIMIT_TOKEN=0 TAVOLA_LIMIT_ADDRESS=0 TAVOLA_LIMIT_MOVES=0 TAVOLA_LIMIT_REGISTRATIONS=0 \
        "$binary" serve --data-dir "$work/data" >"$work/server.log" 2>&1 &
    server=$!
    # It says where it listens once it is ready.
    tries=0
    while [ -z "$url" ]; do
        if ! kill -0 "$server" 2>/dev/null || [ "$tries" -ge 600 ]; then
            say 'the server does not start:'
            cat "$work/server.log" >&2
            kill "$server" 2>/dev/null
            server=
            return 1
        fi
        sleep 0.1
        tries=$((tries + 1))
        url=$(sed -n 's|^ *API *\(http://[^ ]*\)/v1$|\1|p' "$work/server.log")
    done
}

# Runs a step of a client; its output is shown only if it fails. How long it took is added to $steps.
step() {
    name=$1 begun=$(date +%s)
    shift
    if ! "$@" >"$work/step.log" 2>&1; then
        say "$language: $name failed: $*"
        cat "$work/step.log" >&2
        return 1
    fi
    steps="$steps, $name $(($(date +%s) - begun)) s"
}

# Plays; the last line of output are the figures.
play() {
    step play "$@" || return 1
    printf '%s: %s%s\n' "$language" "$(tail -n 1 "$work/step.log")" "$steps"
}

# Installs what a lock file says, unless that is what was installed last.
install_once() {
    lock=$1 place=$2
    shift 2
    cmp -s "$lock" "$place/installed" && return
    rm -rf "$place"
    step install "$@" && cp "$lock" "$place/installed"
}

# Its warnings are all that it writes to stderr, and mean that something has been left out or guessed.
generate_typescript() {
    npm run --silent generate 2>"$work/warnings"
    status=$?
    cat "$work/warnings"
    [ "$status" -eq 0 ] && [ ! -s "$work/warnings" ]
}

typescript() {
    cd clients/typescript || return 1
    install_once package-lock.json node_modules npm ci --no-audit --no-fund || return 1
    rm -rf generated build
    step generate generate_typescript && step check npm run build && play npm run --silent play -- "$url"
}

install_python() {
    python3 -m venv venv && venv/bin/pip install --quiet --no-compile --disable-pip-version-check -r requirements.txt
}

python() {
    cd clients/python || return 1
    install_once requirements.txt venv install_python || return 1
    # A warning means that something has been left out of the client; it fails on them by itself.
    step generate venv/bin/openapi-python-client generate --path ../../openapi/openapi.json --config generator.yaml \
        --meta none --output-path generated/tavola_client --overwrite --fail-on-warning || return 1
    step check env MYPYPATH=generated venv/bin/mypy --strict play.py generated/tavola_client || return 1
    play env PYTHONPATH=generated PYTHONDONTWRITEBYTECODE=1 venv/bin/python play.py "$url"
}

# The build script generates; the compiler is clippy's, which lints what it compiles (`cargo clippy` would not leave a
# program). Its target directory is clients/rust/target, or CARGO_TARGET_DIR.
rust() {
    RUSTC_WORKSPACE_WRAPPER=$(command -v clippy-driver || echo "$(rustc --print sysroot)/bin/clippy-driver")
    export RUSTC_WORKSPACE_WRAPPER
    step format cargo fmt --check --manifest-path clients/rust/Cargo.toml || return 1
    step build cargo build --quiet --locked --manifest-path clients/rust/Cargo.toml || return 1
    play cargo run --quiet --locked --manifest-path clients/rust/Cargo.toml -- "$url"
}

if [ -z "$url" ]; then
    start_server || exit 1
fi
failed=''
for language in $languages; do
    steps=''
    ("$language") || failed="$failed $language"
done
if [ -n "$failed" ]; then
    say "failed:$failed"
    exit 1
fi
