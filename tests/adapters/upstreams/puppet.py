"""A server that says what the calls tell it to say.

`arguments.say`: texts, written as lines in which $ID is the request's id. `arguments.exit`: ends
at once with this code. Without either it stays silent. Other requests get an empty result.
"""

import json
import os
import sys


def main():
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if not isinstance(message, dict) or "method" not in message:
            continue
        arguments = (message.get("params") or {}).get("arguments") or {}
        said = arguments.get("say", [] if message["method"] == "tools/call" else [EMPTY])
        if "id" in message or "say" in arguments:
            for text in said:
                text = text.replace("$ID", json.dumps(message.get("id")))
                sys.stdout.buffer.write(text.encode() + b"\n")
            sys.stdout.buffer.flush()
        if "exit" in arguments:
            os._exit(arguments["exit"])


EMPTY = '{"jsonrpc":"2.0","id":$ID,"result":{}}'
main()
