"""A small agent: starts a shim before a server, calls tools, and ends as it is told to.

`python agent.py LAST TOOL… -- SHIM COMMAND…`; LAST is `exit=N`, `hang` (until a signal) or
`abandon`, which leaves without closing anything.
"""

import json
import os
import signal
import subprocess
import sys

split = sys.argv.index("--")
last, *tools = sys.argv[1:split]
shim = subprocess.Popen(sys.argv[split + 1 :], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

for number, tool in enumerate(tools, start=1):
    asked = {"name": tool, "arguments": {}}
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}
    shim.stdin.write(json.dumps(message).encode() + b"\n")
    shim.stdin.flush()
    print(tool, json.loads(shim.stdout.readline()).get("error", {}).get("code", 0), flush=True)
if last == "hang":
    print("hanging", flush=True)
    signal.pause()
if last == "abandon":
    os._exit(0)
shim.stdin.close()
shim.wait()
sys.exit(int(last.removeprefix("exit=")))
