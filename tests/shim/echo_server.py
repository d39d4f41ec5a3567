"""A small MCP server for the tests: writes down each call that it executes, then answers it.

`python echo_server.py LOG [OPTION…]`. The tool's name says what happens: `echo` answers, `fail` is
an isError, `error` a JSON-RPC error, `hang` gets no answer, `gate` one as soon as the file named in
its arguments exists, `ask` asks for input until the client says it is done, `deaf` closes the
server's input and answers, `crash` ends the server. Standard library's C modules only: it starts at once.
"""

import os
import signal
import sys
from json import loads

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
options = sys.argv[2:]


def flood(megabytes):
    """Writes to stderr before the handshake, whether it is read or not."""
    for _ in range(megabytes * 16):
        os.write(2, b"x" * 65535 + b"\n")


def leave_a_daemon():
    """Another session, another group, no parent, deaf to SIGTERM."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                signal.pause()
        os._exit(0)
    os.wait()


def say(message_id, body):
    os.write(1, b'{"jsonrpc":"2.0","id":%b,%b}\n' % (message_id, body))


def execute(message, message_id):
    name, args = message["params"]["name"], message["params"].get("arguments", {})
    os.write(log, b"%b\n" % message_id)
    if name == "crash":
        os.write(2, b"about to crash\n")
        os._exit(3)
    if name == "hang":
        return
    if name == "gate":
        while not os.path.exists(args["file"]):
            signal.sigtimedwait([], 0.005)
    if name == "deaf":
        os.close(0)
        os.open("/dev/null", os.O_RDONLY)
    if name == "ask" and not message["params"].get("inputResponses", {}).get("done"):
        say(message_id, b'"result":{"resultType":"input_required","requestState":"r"}')
    elif name == "error":
        say(message_id, b'"error":{"code":-1,"message":"no"}')
    elif name == "fail":
        say(message_id, b'"result":{"content":[],"isError":true}')
    else:
        say(message_id, b'"result":{"content":[{"type":"text","text":"done"}]}')


def serve():
    pending = b""
    while data := os.read(0, 65536):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            message = loads(line)
            message_id = b"%d" % message["id"] if "id" in message else b""
            if message.get("method") == "tools/call":
                execute(message, message_id)
            elif message.get("method") == "tools/list":
                say(message_id, b'"result":{"tools":[{"name":"echo"},{"name":"get-sum"}]}')
            elif message_id:
                say(message_id, b'"result":{}')


for option in options:
    name, _, value = option.partition("=")
    if name == "stubborn":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    elif name == "term":
        signal.signal(signal.SIGTERM, lambda *_, code=int(value): os._exit(code))
    elif name == "say":
        os.write(2, value.encode() + b"\n")
    elif name == "flood":
        flood(int(value))
    elif name == "daemon":
        leave_a_daemon()
serve()
while "stubborn" in options or "deaf" in options:
    signal.pause()
os.write(2, b"bye\n")
os._exit(next((int(option[5:]) for option in options if option.startswith("exit=")), 0))
