#!/usr/bin/env python3
"""PreToolUse: adds `--locked --offline` to the command of `cargo build`, `check` and `test`.

The changed call is judged like any other, and the user who is asked about it sees both.
"""

import json
import re
import sys

call = json.load(sys.stdin)
command = call["tool_input"].get("command")
if isinstance(command, str):
    changed = re.sub(r"\bcargo (build|check|test)\b(?! --locked)", r"cargo \1 --locked --offline", command)
    if changed != command:
        change = {"hookEventName": "PreToolUse", "updatedInput": {"command": changed}}
        print(json.dumps({"hookSpecificOutput": change}))
