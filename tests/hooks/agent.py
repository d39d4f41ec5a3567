"""An agent at its client: sends the client's hook events to `sub hook` as the client does."""

import itertools
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
from typing import IO, NamedTuple

from tests.hooks.shapes import RESULTS, SHAPES
from tests.processes import WITHIN_S
from tests.shim.household import SUB, Client

FAKE_CLIENT = str(pathlib.Path(__file__).with_name("fake_client.py"))


class Said(NamedTuple):
    """What a client was told by its hook."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def is_nothing(self):
        """Whether the client was told nothing, so that it goes on as it would without a hook."""
        return self.code == 0 and not self.out


class Server(NamedTuple):
    """A stdio shim that the client started, in the place of a Popen."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    pid: int
    stderr: None = None


SESSION_VARIABLES = {
    "claude": "CLAUDE_CODE_SESSION_ID",
    "copilot": "COPILOT_AGENT_SESSION_ID",
}
"""How servers learn the session."""


class Agent:
    """One client process with its sessions."""

    def __init__(self, household, client="claude", session="s1", words=(), sub=SUB, **env):
        self.household = household
        self.client = client
        self.shape = SHAPES[client]
        self.session = session
        self.words = words
        self.sub = sub
        self._numbers = itertools.count()
        self._answers: dict[int, queue.Queue] = {}
        self.servers: list[Client] = []
        self.process = subprocess.Popen(
            [sys.executable, "-S", FAKE_CLIENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=household.env(**env),
            cwd=household.cwd,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            told = json.loads(line)
            self._answers[told.pop("id")].put(told)

    def send(self, text, event="", words=None, **env):
        """Starts a hook with this text on stdin; returns a function that waits for the answer."""
        number = next(self._numbers)
        self._answers[number] = answers = queue.Queue()
        named = [event] if event else []
        if self.client == "claude":
            env = {
                "CLAUDE_CODE_SESSION_ID": self.session,
                "CLAUDE_PID": str(self.process.pid),
                **env,
            }
        argv = [*self.sub, "hook", self.client, *named, *(self.words if words is None else words)]
        asked = {"id": number, "argv": argv, "stdin": text, "env": env}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

        def wait():
            return Said(**answers.get(timeout=WITHIN_S))

        return wait

    def event(self, name, **members):
        """Sends an event."""
        told = {self.shape.session: self.session, "cwd": str(self.household.cwd)}
        named = {self.shape.event: name} if self.shape.event else {}
        return self.send(json.dumps({**told, **named, **members}), event="" if named else name)

    def before(self, tool="Bash", args=None, call="t1", **members):
        return self.ask(tool, args, call, **members)()

    def ask(self, tool="Bash", args=None, call="t1", **members):
        """Starts the hook before a call; returns a function that waits for the answer."""
        return self.event(self.shape.before, **self._call(tool, args, call), **members)

    def after(self, tool="Bash", args=None, call="t1", response=None, **members):
        result = RESULTS[self.client] if response is None else response
        told = {**self._call(tool, args, call), self.shape.result: result, **members}
        return self.event(self.shape.after, **told)()

    def _call(self, tool, args, call):
        ids = {self.shape.call: call} if self.shape.call else {}
        return {self.shape.name: tool, self.shape.args: args or {}, **ids}

    def stop(self):
        return self.event(self.shape.stop)()

    def end(self):
        return self.event(self.shape.end, reason="other")()

    def start_server(self, *options, **env):
        """Starts a stdio shim as a child of the client; returns the client's end of it."""
        number = next(self._numbers)
        self._answers[number] = answers = queue.Queue()
        pipes = [str(self.household.tmp_path / f"pipe-{number}-{end}") for end in ("in", "out")]
        for path in pipes:
            os.mkfifo(path)
        if self.client in SESSION_VARIABLES:
            env = {SESSION_VARIABLES[self.client]: self.session, **env}
        upstream = self.household.server(*options)
        argv = [*SUB, "shim", "stdio", "--server", "echo", "--", *upstream]
        asked = {"id": number, "argv": argv, "env": env, "serve": pipes}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        stdin, stdout = (
            os.fdopen(os.open(path, flag), mode)
            for path, flag, mode in zip(
                pipes, (os.O_WRONLY, os.O_RDONLY), ("wb", "rb"), strict=True
            )
        )
        pid = answers.get(timeout=WITHIN_S)["code"]
        server = Client(Server(stdin, stdout, pid))
        self.servers.append(server)
        return server

    def hook_shims(self):
        """Returns the pids of the living hook shims of the household.

        A hook shim leads a session. A process that it has just forked, such as `ps`, has its words.
        """
        return [
            pid
            for pid in self.household.alive()
            if pid != self.process.pid and b"hook" in _words(pid) and _leads_a_session(pid)
        ]

    def kill(self):
        self.process.kill()
        self.process.wait(WITHIN_S)

    def close(self):
        for server in self.servers:
            server.close()
            server.process.stdout.close()
        self.process.stdin.close()
        self.process.kill()
        self.process.wait(WITHIN_S)
        self.process.stdout.close()


def _leads_a_session(pid):
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _words(pid):
    from subluminal.system.processes import command

    return command(pid)
