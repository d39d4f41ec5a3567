"""An agent of the load test: three servers at once, a list of calls for each, and perhaps a kill.

`python agent.py JOB.json`. The file `ready` means that every server has answered. The agent then
waits for `go`, makes its calls, writes `done` and waits for `leave`. Each answer is a line in a file
before the next call is made. A server that dies is started again, as some clients do. Only the
standard library is imported, so that it starts fast.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

with open(sys.argv[1], encoding="utf-8") as file:
    JOB = json.load(file)
PLACE = JOB["place"]
answers = os.open(f"{PLACE}/answers", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
answered = 0
lock = threading.Lock()


class Server:
    """One server behind its shim."""

    def __init__(self, number, command):
        self.number = number
        self.command = command
        self.next_id = 0
        self.start()

    def start(self):
        self.shim = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.unread = b""
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        self.ask("initialize", {**hello, "clientInfo": {"name": "load", "version": "1"}})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("ping", {})  # the first answer may come before the shim has loaded everything

    def ask(self, method, params):
        """Returns the answer, or None if the shim is gone."""
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        if not self.write(request):
            return None
        while True:
            line, newline, rest = self.unread.partition(b"\n")
            if newline:
                self.unread = rest
                message = json.loads(line)
                if message.get("id") == self.next_id and "method" not in message:
                    return message
                continue
            data = os.read(self.shim.stdout.fileno(), 65536)
            if not data:
                return None
            self.unread += data

    def write(self, message):
        try:
            os.write(self.shim.stdin.fileno(), json.dumps(message).encode() + b"\n")
        except BrokenPipeError:
            return False
        return True

    def work(self, calls):
        for tool, args in calls:
            message = self.ask("tools/call", {"name": tool, "arguments": args})
            if message is None:
                self.end()
                self.start()
                note(self.number, tool, "gone")
            else:
                note(self.number, tool, message.get("error", {}).get("code", 0))

    def end(self):
        self.shim.stdin.close()
        self.shim.stdout.close()
        self.shim.wait()


def note(number, tool, outcome):
    """Writes an answer to the file. Kills the server or the agent itself when it is time."""
    global answered
    os.write(answers, f"{number} {tool} {outcome}\n".encode())
    with lock:
        answered += 1
        blow = JOB["blow"] if answered == JOB["blow_at"] else None
    if blow == "server":
        kill_server(servers[JOB["victim"]].shim.pid)
    elif blow:
        os.kill(os.getpid(), getattr(signal, blow))


def kill_server(shim):
    """Kills the server of a shim, which is below its deputy and its warden."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    words = stat.read().rpartition(")")[2].split()
                parents[int(name)] = int(words[1])
            except OSError:
                continue
    for pid, parent in parents.items():
        if parents.get(parents.get(parent)) == shim:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return


def wait_for(name):
    deadline = time.monotonic() + JOB["patience_s"]
    while not os.path.exists(f"{JOB['signs']}/{name}"):
        if time.monotonic() > deadline:
            os._exit(9)
        time.sleep(0.05)


def touch(name):
    os.close(os.open(f"{PLACE}/{name}", os.O_CREAT | os.O_WRONLY, 0o600))


def each(work):
    threads = [
        threading.Thread(target=work, args=(number,)) for number in range(len(JOB["servers"]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


servers = [None] * len(JOB["servers"])


def begin(number):
    servers[number] = Server(number, JOB["servers"][number])


each(begin)
touch("ready")
wait_for("go")
each(lambda number: servers[number].work(JOB["calls"][number]))
touch("done")
wait_for("leave")
for server in servers:
    server.end()
