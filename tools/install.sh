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

# pip install from the lock; more arguments narrow what is taken or how.
pip_install() {
    pip install --no-user --no-deps --no-build-isolation "$@" || explain
}

explain() {
    local reason
    if grep -qiE 'connection|timed? ?out|name resolution|retries exceeded|proxy' "$LOG"; then
        fail "packages could not be fetched: no network, or no package index in reach;" \
            "see $LOG, then run make again"
    fi
    reason=$(grep -iE '^ *(error|fatal)' "$LOG" | tail -n 1) || reason="pip failed"
    fail "packages could not be installed: ${reason#"${reason%%[! ]*}"}; see $LOG"
}

# The lock's entries of the named packages.
locked() {
    awk -v names=" $* " '
        /^[^ ]/ { split($1, part, "=="); taken = index(names, " " part[1] " ") }
        taken
    ' requirements.lock
}

make_venv() {
    local python
    python=$(find_python)
    if [ -e .venv ] && ! "$VENV_PYTHON" -c 'import pip, sys; sys.version_info[:2] == (3, 11) or 1/0' \
        2>/dev/null; then
        "$python" -m venv --clear .venv >>"$LOG" 2>&1 || fail "$python could not clear .venv; see $LOG"
    else
        "$python" -m venv .venv >>"$LOG" 2>&1 || fail "$python could not make .venv; see $LOG"
    fi
}

main() {
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
    echo "Installing $(grep -c == requirements.lock) locked packages into .venv (a minute or two; $LOG) ..."
    make_venv
    # What builds the packages that have no wheel; without it pip would fetch other versions.
    locked setuptools wheel >.cache/build-requirements.txt
    pip_install --require-hashes -r .cache/build-requirements.txt
    pip_install --require-hashes -r requirements.lock
    pip_install --editable .
    pip check || fail "the installed packages do not fit together; see $LOG"
    touch "$STAMP"
    echo "Installed in ${SECONDS} s."
}

main
