"""A door before the shim, as a hook is one: decides calls, offers them, learns their ends.

`python first_door.py RUN`. Reads one JSON object a line, answers each with one. SUB_TEST_AGE_MS
makes every call look as if it had begun that much earlier.
"""

import json
import os
import sys

from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Status, Transport
from subluminal.core.ruling import CallEnding
from subluminal.wiring import open_host

AGE_NS = int(os.environ.get("SUB_TEST_AGE_MS", "0")) * 1_000_000


def serve(host):
    rulings = {}
    for line in sys.stdin:
        words = json.loads(line)
        if words["do"] == "decide":
            ruling = decide(host, words)
            rulings[ruling.call_id] = ruling
            answer = ruling.call_id if ruling.is_allowed else ruling.decision.reason_code
        elif words["do"] == "end":
            ruling = rulings.pop(words["call_id"])
            answer = host.withdraw(ruling)
            host.finish(ruling, CallEnding(Status.OK, 2, b"ok"))
            host.flush()
        else:
            answer = sum(each.open_calls for each in host._open.values())
        print(json.dumps(answer), flush=True)


def decide(host, words):
    call = ToolCall(
        server_name=words["server"],
        tool_name=words["tool"],
        args=words["args"],
        args_hash=args_hash(words["args"]),
        bytes_in=len(json.dumps(words["args"])),
        transport=Transport.AGENT_HOOK,
        context={} if words["call"] is None else {"client_call_id": words["call"]},
    )
    ruling = host.begin(call, encode(words["args"]))
    ruling.started_ns -= AGE_NS
    if not ruling.is_allowed:
        host.finish(ruling, CallEnding(Status.ERROR, 0))
    elif words["offer"]:
        host.offer(ruling)
    return ruling


def main():
    environ = {**os.environ, "CLAUDE_CODE_SESSION_ID": sys.argv[1]}
    host = open_host(places(environ), environ=environ)
    host.tick(0, force=True)
    host.await_policies(30)
    serve(host)
    host.close()


main()
