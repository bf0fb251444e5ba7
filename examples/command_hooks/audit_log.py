#!/usr/bin/env python3
"""PostToolUse and PostToolUseFailure: appends a line about each call that ran to the file of the argument.

The audit log of the program (`--audit`) has the decisions as well; this one is for a system of your own.
"""

import json
import os
import sys
import time

call = json.load(sys.stdin)
line = {
    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    "session": call["session_id"],
    "call": call["tool_use_id"],
    "tool": call["tool_name"],
    "milliseconds": call.get("duration_ms"),
    "error": call.get("error"),
}
# One write to a file that is opened for appending: lines of calls side by side do not mix.
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(log, (json.dumps(line) + "\n").encode())
