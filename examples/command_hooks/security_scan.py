#!/usr/bin/env python3
"""PreToolUse: denies commands that destroy files or run downloads, and asks about a network."""

import json
import re
import sys

DENIED = [r"rm\s+-\w*[rR]\w*\s+/(\s|$)", r"(curl|wget)\b[^|]*\|\s*(sudo\s+)?\w*sh\b", r"\bmkfs\b"]
ASKED = [r"\b(curl|wget|ssh|scp|nc)\b"]

call = json.load(sys.stdin)
command = call["tool_input"].get("command", "")
text = " ".join(map(str, command)) if isinstance(command, list) else str(command)


def decide(decision, reason):
    answer = {"permissionDecision": decision, "permissionDecisionReason": reason}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **answer}}))
    sys.exit()


for pattern in DENIED:
    if re.search(pattern, text):
        decide("deny", f"`{pattern}` is never run here")
for pattern in ASKED:
    if re.search(pattern, text):
        decide("ask", "the command may reach a network")
