"""Answers requests to reverse a text, one JSON object a line."""

import json
import sys

for line in sys.stdin:
    request = json.loads(line)
    text = request["arguments"]["text"]
    if text:
        answer = {"id": request["id"], "result": text[::-1]}
    else:
        answer = {"id": request["id"], "error": "`text` is empty", "hint": "pass a text"}
    print(json.dumps(answer), flush=True)
