#!/usr/bin/env bash
# Builds .venv from requirements.lock: exactly its packages, in exactly its versions.
# Run again, it repairs .venv. pip's output goes to .cache/install.log.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/require.sh
. tools/require.sh

LOG=.cache/install.log
STAMP=.venv/installed
VENV_PYTHON=.venv/bin/python

pip() {
    printf '\n$ pip %s\n' "$*" >>"$LOG"
    "$VENV_PYTHON" -m pip --disable-pip-version-check --no-input "$@" >>"$LOG" 2>&1
}

# Installs exactly the named packages. Without --no-compile it would take three times as long.
pip_install() {
    pip install --no-user --no-deps --no-build-isolation --no-compile "$@" || explain
}

# Reports why pip failed, by its last error: earlier errors may have been retried.
explain() {
    local last network='no matching distribution|connection|timed? ?out|resolution|max retries'
    last=$(grep -iE 'error' "$LOG" | tail -n 1) || last="pip failed"
    if printf '%s\n' "$last" | grep -qiE "$network"; then
        fail "packages could not be fetched: no network, or no package index that answers;" \
            "see $LOG, then run make again"
    fi
    fail "packages could not be installed: $last; see $LOG"
}

# Prints the lock's entries of the named packages.
locked() {
    awk -v names=" $* " '
        /^[^ ]/ { split($1, part, "=="); taken = index(names, " " part[1] " ") }
        taken
    ' requirements.lock
}

# Keeps the caller's settings of where pip finds packages; drops those of how pip installs, and
# the paths from which Python would import other packages.
own_environment() {
    local name
    unset PYTHONPATH PYTHONHOME
    for name in "${!PIP_@}"; do
        case $name in
            PIP_*INDEX* | PIP_FIND_LINKS | PIP_TRUSTED_HOST | PIP_KEYRING_PROVIDER) ;;
            PIP_PROXY | PIP_CERT | PIP_CLIENT_CERT | PIP_RETRIES | PIP_*TIMEOUT) ;;
            PIP_*CACHE_DIR | PIP_CONFIG_FILE) ;;
            *) unset "$name" ;;
        esac
    done
}

# Shows on a terminal how far pip is and for how long it has run, until the shell ends.
show_progress() {
    while sleep 1; do
        printf '\rInstalling: %s of %s packages fetched, %s s ' \
            "$(grep -c '^Collecting ' "$LOG")" "$1" "$SECONDS"
    done
}

make_venv() {
    local python=$1 usable='import pip, sys; assert sys.version_info[:2] == (3, 11)'
    if ! "$VENV_PYTHON" -c "$usable" 2>/dev/null; then
        "$python" -m venv --clear .venv >>"$LOG" 2>&1 || fail "$python could not create .venv; see $LOG"
    fi
}

main() {
    local python number
    require_java
    python=$(find_python)
    own_environment
    mkdir -p .cache
    # Of two makes at once, the second waits, and then finds .venv complete.
    if command -v flock >/dev/null; then
        exec 9>.cache/install.lock
        flock 9
    fi
    if [ "$STAMP" -nt requirements.lock ] && [ "$STAMP" -nt pyproject.toml ]; then
        return
    fi
    : >"$LOG"
    number=$(grep -c == requirements.lock)
    echo "Installing $number packages into .venv ($LOG)"
    if [ -t 1 ]; then
        show_progress "$number" &
        # shellcheck disable=SC2064  the process is known now
        trap "kill $!" EXIT
    fi
    make_venv "$python"
    # Builds packages without a wheel; pip would fetch other versions of these tools.
    locked setuptools wheel >.cache/build-requirements.txt
    pip_install --require-hashes -r .cache/build-requirements.txt
    pip_install --require-hashes -r requirements.lock
    pip_install --editable .
    pip check || fail "the installed packages do not fit together; see $LOG"
    touch "$STAMP"
    printf '\nInstalled in %s s\n' "$SECONDS"
}

main
