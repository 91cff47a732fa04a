#!/usr/bin/env bash
# Builds .venv from requirements.lock: nothing that is not in the lock, no version but its own.
# Run again it mends what is there. pip's own words go to .cache/install.log.
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

# pip install of exactly what is named. What is never imported is never compiled: a third of
# the time.
pip_install() {
    pip install --no-user --no-deps --no-build-isolation --no-compile "$@" || explain
}

# Tells why pip ended, from its last words: it may have tried again before.
explain() {
    local last network='no matching distribution|connection|timed? ?out|resolution|max retries'
    last=$(grep -iE 'error' "$LOG" | tail -n 1) || last="pip failed"
    if printf '%s\n' "$last" | grep -qiE "$network"; then
        fail "packages could not be fetched: no network, or no package index in reach;" \
            "see $LOG, then run make again"
    fi
    fail "packages could not be installed: $last; see $LOG"
}

# The lock's entries of the named packages.
locked() {
    awk -v names=" $* " '
        /^[^ ]/ { split($1, part, "=="); taken = index(names, " " part[1] " ") }
        taken
    ' requirements.lock
}

# Where packages come from is the caller's to say; how they are installed is not, and neither
# is what else Python imports.
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

make_venv() {
    local python=$1 usable='import pip, sys; assert sys.version_info[:2] == (3, 11)'
    if ! "$VENV_PYTHON" -c "$usable" 2>/dev/null; then
        "$python" -m venv --clear .venv >>"$LOG" 2>&1 || fail "$python made no .venv; see $LOG"
    fi
}

main() {
    local python
    require_java
    python=$(find_python)
    own_environment
    mkdir -p .cache
    # Two makes at once: the second waits, then finds the work done.
    if command -v flock >/dev/null; then
        exec 9>.cache/install.lock
        flock 9
    fi
    if [ "$STAMP" -nt requirements.lock ] && [ "$STAMP" -nt pyproject.toml ]; then
        return
    fi
    : >"$LOG"
    echo "Installing $(grep -c == requirements.lock) packages into .venv, a minute or two ($LOG)"
    make_venv "$python"
    # What builds the packages that have no wheel; without it pip would fetch other versions.
    locked setuptools wheel >.cache/build-requirements.txt
    pip_install --require-hashes -r .cache/build-requirements.txt
    pip_install --require-hashes -r requirements.lock
    pip_install --editable .
    pip check || fail "the installed packages do not fit together; see $LOG"
    touch "$STAMP"
    echo "Installed in $SECONDS s"
}

main
