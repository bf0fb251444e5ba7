#!/bin/sh
# Tests the tools without a host: each command gets what a host sends, and must print what is expected.
set -eu
cd "$(dirname "$0")"

check() {
    if [ "$2" != "$3" ]; then
        echo "$1: expected $3, got $2" >&2
        exit 1
    fi
    echo "ok: $1"
}

check "a text of two lines" "$(printf '%s\n' '{"text":"one\ntwo"}' | ./tools/count_lines.sh)" '{"lines": 2}'
check "a text of one line" "$(printf '%s\n' '{"text":"one"}' | ./tools/count_lines.sh)" '{"lines": 1}'
check "a text is reversed" \
    "$(printf '%s\n' '{"id": 1, "tool": "reverse", "arguments": {"text": "abc"}}' | python3 tools/reverse.py)" \
    '{"id": 1, "result": "cba"}'
check "an empty text is refused" \
    "$(printf '%s\n' '{"id": 2, "tool": "reverse", "arguments": {"text": ""}}' | python3 tools/reverse.py)" \
    '{"id": 2, "error": "`text` is empty", "hint": "pass a text"}'
