#!/usr/bin/env python3
"""PreToolUse and PostToolUse: takes secrets out of the arguments of a call, and out of its result.

An entry with `"on_error": "deny"` shows no result that this command has not read.
"""

import json
import re
import sys

SECRETS = [r"ghp_[A-Za-z0-9]{36}", r"sk-[A-Za-z0-9_-]{20,}", r"(?<=password=)\S+"]


def strip(value):
    if isinstance(value, str):
        for pattern in SECRETS:
            value = re.sub(pattern, "[secret]", value)
        return value
    if isinstance(value, list):
        return [strip(item) for item in value]
    if isinstance(value, dict):
        return {key: strip(item) for key, item in value.items()}
    return value


call = json.load(sys.stdin)
event = call["hook_event_name"]
before = call["tool_input"] if event == "PreToolUse" else call["tool_response"]
after = strip(before)
if after != before:
    key = "updatedInput" if event == "PreToolUse" else "updatedToolOutput"
    print(json.dumps({"hookSpecificOutput": {"hookEventName": event, key: after}}))
