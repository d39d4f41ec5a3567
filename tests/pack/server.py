"""A server that writes down every line it reads and answers as `params._meta` says.

`answer`: the members of the response; without it the server stays silent. `letters`: the length of
a result of that many bytes. `leak`: the result is the value of this environment variable.
"""

import json
import os
import sys

for line in sys.stdin.buffer:
    with open(sys.argv[1], "ab") as log:
        log.write(line)
    message = json.loads(line)
    meta = (message.get("params") or {}).get("_meta") or {}
    answer = meta.get("answer")
    if "letters" in meta:
        answer = {"result": {"content": [{"type": "text", "text": "x" * meta["letters"]}]}}
    if "leak" in meta:
        text = os.environ.get(meta["leak"], "nothing")
        answer = {"result": {"content": [{"type": "text", "text": text}]}}
    if "id" in message and answer is not None:
        said = {"jsonrpc": "2.0", "id": message["id"], **answer}
        sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
        sys.stdout.buffer.flush()
