#!/usr/bin/env bash
# Requires Python 3.11 with venv, Java 17 or newer, and for `make browser` a browser. If one is
# missing, prints a line and exits with status 2. As a program it takes a requirement: `java`,
# `browser` or `free_port 3000`. install.sh sources it for its functions.
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
                printf 'windows-pipeline: PYTHON is %s, which is no Python 3.11 with venv; using %s\n' \
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

# Requires that no program listens on a port of this machine.
require_free_port() {
    if (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
        fail "port $1 is in use; name another: make ui PORT=3001"
    fi
}

require_java() {
    local java=java text version fix
    fix="install a JDK 17 or 21, or set JAVA_HOME to one"
    if [ -n "${JAVA_HOME:-}" ]; then
        java=$JAVA_HOME/bin/java
        [ -x "$java" ] || fail "JAVA_HOME is $JAVA_HOME, which has no bin/java; $fix"
    fi
    text=$("$java" -version 2>&1) || fail "Java 17 or newer is needed (found: none); $fix"
    # Prints 'openjdk version "17.0.15"'; up to Java 8, "1.8.0".
    version=$(printf '%s\n' "$text" | sed -n 's/^.* version "\(1\.\)\{0,1\}\([0-9]*\).*$/\2/p')
    version=${version%%$'\n'*}
    [ -n "$version" ] || fail "Java 17 or newer is needed ($java prints no version); $fix"
    [ "$version" -ge 17 ] || fail "Java 17 or newer is needed (found: $version, $java); $fix"
}

# Prints the path of a browser: $BROWSER_BINARY, else the first found on PATH.
require_browser() {
    local candidate
    local fix="install Chromium (Debian: chromium), or name one: make browser BROWSER_BINARY=/path/to/it"
    if [ -n "${BROWSER_BINARY:-}" ]; then
        command -v "$BROWSER_BINARY" || fail "BROWSER_BINARY must be a program, but is $BROWSER_BINARY; $fix"
        return
    fi
    for candidate in chromium chromium-browser google-chrome; do
        if command -v "$candidate"; then
            return
        fi
    done
    fail "Chromium or Chrome is needed (found: none); $fix"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    "require_$@"
fi
