#!/usr/bin/env bash
# What the machine must have: Python 3.11 with venv, Java 17 or newer; for `make browser` a browser.
# What is missing is told in one line, with status 2. Run, it looks for what it is told, `java`,
# `browser` or `free_port 3000`; sourced, it gives its functions to install.sh.
set -euo pipefail

fail() {
    printf 'windows-pipeline: %s\n' "$*" >&2
    exit 2
}

# Prints the Python to build .venv with: $PYTHON, else python3.11, else a python3 that is 3.11.
find_python() {
    local candidate version seen=""
    for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3; do
        version=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' \
            2>/dev/null) || continue
        if [ "$version" != 3.11 ]; then
            seen="$seen${seen:+, }$candidate is $version"
        elif "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
            if [ "$candidate" != "${PYTHON:-$candidate}" ]; then
                printf 'windows-pipeline: PYTHON is %s, which is no Python 3.11 with venv; %s is taken\n' \
                    "$PYTHON" "$candidate" >&2
            fi
            printf '%s\n' "$candidate"
            return
        else
            seen="$seen${seen:+, }$candidate has no venv or ensurepip module (Debian: python3.11-venv)"
        fi
    done
    fail "Python 3.11 with venv is needed (found: ${seen:-none}${PYTHON:+; PYTHON is $PYTHON});" \
        "install it, or name one: make PYTHON=/path/to/python3.11"
}

# That nothing answers on a port of this machine.
require_free_port() {
    if (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
        fail "port $1 is in use; name another: make ui PORT=3001"
    fi
}

require_java() {
    local java=java text version cure
    cure="install a JDK 17 or 21, or set JAVA_HOME to one"
    if [ -n "${JAVA_HOME:-}" ]; then
        java=$JAVA_HOME/bin/java
        [ -x "$java" ] || fail "JAVA_HOME is $JAVA_HOME, which has no bin/java; $cure"
    fi
    text=$("$java" -version 2>&1) || fail "Java 17 or newer is needed (found: none); $cure"
    # 'openjdk version "17.0.15"'; up to 8 it was "1.8.0".
    version=$(printf '%s\n' "$text" | sed -n 's/^.* version "\(1\.\)\{0,1\}\([0-9]*\).*$/\2/p')
    version=${version%%$'\n'*}
    [ -n "$version" ] || fail "Java 17 or newer is needed ($java tells no version); $cure"
    [ "$version" -ge 17 ] || fail "Java 17 or newer is needed (found: $version, $java); $cure"
}

# Prints the browser's path: $BROWSER_BINARY, else the first that the path has.
require_browser() {
    local candidate
    local cure="install Chromium (Debian: chromium), or name one: make browser BROWSER_BINARY=/path/to/it"
    if [ -n "${BROWSER_BINARY:-}" ]; then
        command -v "$BROWSER_BINARY" || fail "BROWSER_BINARY is $BROWSER_BINARY, which is no program; $cure"
        return
    fi
    for candidate in chromium chromium-browser google-chrome; do
        if command -v "$candidate"; then
            return
        fi
    done
    fail "Chromium or Chrome is needed (found: none); $cure"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    "require_$@"
fi
