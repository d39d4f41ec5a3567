"""A server that answers each call with what `params._meta.answer` says."""

import json
import sys

for line in sys.stdin.buffer:
    message = json.loads(line)
    answer = message["params"]["_meta"]["answer"]
    said = {"jsonrpc": "2.0", "id": message["id"], **answer}
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
    sys.stdout.buffer.flush()
