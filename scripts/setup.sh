#!/bin/sh
# Checks for all that building and running needs: Rust, a C compiler (which links, and compiles three of the crates),
# PostgreSQL's server programs. Installs what is missing if the system's package manager has it and we may use it
# without a password; else says what to install and fails. Says nothing if all is there. --without-postgres leaves out
# PostgreSQL, for those who serve from a database they have.
set -u

RUST=1.95       # as in Cargo.toml
POSTGRES=15     # as in src/embedded/programs.rs

failed=0
say() { printf 'setup: %s\n' "$*" >&2; }

# $1 >= $2, both MAJOR.MINOR
at_least() {
    [ "${1%%.*}" -gt "${2%%.*}" ] || { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -ge "${2#*.}" ]; }
}

has_rust() {
    # `|| :` stays silent about rustup without a toolchain, which says enough itself when used.
    version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9]*\.[0-9]*\).*/\1/p') || :
    [ -n "$version" ] && at_least "$version" "$RUST"
}

has_cc() { command -v cc >/dev/null 2>&1; }

# The same places as in src/embedded/programs.rs.
has_postgres() {
    for bin in "${TAVOLA_PG_BIN:-}" "$(pg_config --bindir 2>/dev/null)" \
        /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
        /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin /home/linuxbrew/.linuxbrew/opt/postgresql@*/bin \
        /Applications/Postgres.app/Contents/Versions/*/bin \
        /usr/bin /usr/local/pgsql/bin /usr/local/bin /opt/homebrew/bin; do
        if [ -z "$bin" ] || [ ! -x "$bin/postgres" ] || [ ! -x "$bin/initdb" ]; then continue; fi
        major=$("$bin/postgres" --version 2>/dev/null | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
        [ "${major:-0}" -ge "$POSTGRES" ] && return 0
    done
    return 1
}

manager=
for candidate in apt-get dnf apk pacman brew; do
    if command -v "$candidate" >/dev/null 2>&1; then
        manager=$candidate
        break
    fi
done

# Whether we may install without asking anybody. Homebrew wants an ordinary user, the others root.
may_install() {
    case $manager in
        '') return 1 ;;
        brew) [ "$(id -u)" -ne 0 ] ;;
        *) [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# The command by which a person would install packages.
advice() {
    case $manager in
        apt-get) echo "sudo apt-get install $*" ;;
        dnf) echo "sudo dnf install $*" ;;
        apk) echo "apk add $* (as root)" ;;
        pacman) echo "sudo pacman -S $*" ;;
        brew) echo "brew install $*" ;;
    esac
}

apt_updated=
install() {
    may_install || return 1
    say "installing $*"
    case $manager in
        apt-get)
            [ -n "$apt_updated" ] || as_root apt-get update -qq || return 1
            apt_updated=yes
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
            ;;
        dnf) as_root dnf install -y -q "$@" ;;
        apk) as_root apk add -q "$@" ;;
        pacman) as_root pacman -S --noconfirm --needed "$@" ;;
        brew) brew install --quiet "$@" ;;
    esac >&2 </dev/null
}

install_postgres() {
    if [ "$manager" = apt-get ] && ! dpkg -s postgresql-common >/dev/null 2>&1; then
        # Debian makes a cluster of its own and starts it on port 5432. Nobody here asked for that.
        install postgresql-common || return 1
        as_root sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' \
            /etc/postgresql-common/createcluster.conf || return 1
    fi
    # shellcheck disable=SC2086 # words, not a name
    install $postgres_packages
}

cc_packages='' postgres_packages='' rust_packages=''
case $manager in
    apt-get) cc_packages='gcc libc6-dev' postgres_packages=postgresql ;; # its Rust is too old
    dnf) cc_packages=gcc postgres_packages=postgresql-server rust_packages='cargo clippy rustfmt' ;;
    apk) cc_packages=build-base postgres_packages=postgresql rust_packages='cargo rust-clippy rustfmt' ;;
    pacman) cc_packages=gcc postgres_packages=postgresql rust_packages=rust ;;
    brew) postgres_packages=postgresql@17 rust_packages=rust ;;
esac

if ! has_cc; then
    # shellcheck disable=SC2086
    { [ -n "$cc_packages" ] && install $cc_packages && has_cc; } || {
        say "no C compiler (cc). Install one: $(
            if [ -n "$cc_packages" ]; then advice "$cc_packages"; else echo 'xcode-select --install on macOS, gcc or clang elsewhere'; fi)"
        failed=1
    }
fi

if ! has_rust; then
    # A toolchain of rustup's is the user's own; the package manager's would only stand in its shadow.
    if command -v rustup >/dev/null 2>&1; then
        say 'updating Rust (rustup update stable)'
        rustup update --no-self-update stable >&2 </dev/null
    elif ! command -v cargo >/dev/null 2>&1 && [ -n "$rust_packages" ]; then
        # shellcheck disable=SC2086
        install $rust_packages
    fi
    has_rust || {
        say "no Rust $RUST or newer$(command -v cargo >/dev/null 2>&1 && echo " (cargo is ${version:-of unknown version})"). Install it from https://rustup.rs:"
        say "    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
        say "and open a new shell, or run: . \"\$HOME/.cargo/env\""
        failed=1
    }
fi

if [ "${1:-}" != --without-postgres ] && ! has_postgres; then
    { [ -n "$postgres_packages" ] && install_postgres && has_postgres; } || {
        say "no PostgreSQL $POSTGRES or newer (server programs: postgres, initdb). Install it:"
        [ -z "$postgres_packages" ] || say "    $(advice "$postgres_packages")"
        say "or, if that is older, from https://www.postgresql.org/download/. If it is installed in a place of its own,"
        say "set TAVOLA_PG_BIN to the directory of these programs. To serve, DATABASE_URL of any PostgreSQL will do."
        failed=1
    }
fi

exit "$failed"
