#!/usr/bin/env python3
"""PreToolUse: counts what the calls of a session cost, and ends the turn when its budget is spent.

The arguments are the folder of the counters and the budget. A call that is denied afterwards is counted, too.
"""

import fcntl
import hashlib
import json
import os
import sys

# By the names that a matcher `*` shows.
PRICES = {"exec_command": 2, "web_fetch": 5}

call = json.load(sys.stdin)
folder, budget = sys.argv[1], int(sys.argv[2])
os.makedirs(folder, exist_ok=True)
name = hashlib.sha256(call["session_id"].encode()).hexdigest()
with open(os.path.join(folder, name), "a+") as counter:
    # Calls side by side wait for each other.
    fcntl.flock(counter, fcntl.LOCK_EX)
    counter.seek(0)
    spent = int(counter.read() or 0)
    price = PRICES.get(call["tool_name"], 1)
    if spent + price > budget:
        print(json.dumps({"continue": False, "stopReason": f"{spent} of {budget} are spent"}))
    else:
        counter.truncate(0)
        counter.write(str(spent + price))
