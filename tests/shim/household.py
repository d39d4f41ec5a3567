"""Starts shims in front of a small server, drives them as a client does, and finds what they leave.

Every process of a household has a token in its environment, so that none is overlooked.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import termios

from tests.processes import WITHIN_S, Marked, descendants, wait_until, warden_of

from subluminal.journal.reading import journal_files
from subluminal.journal.verifying import ChainCheck
from subluminal.system import PLAIN_POSIX

HERE = pathlib.Path(__file__).parent
SERVER = str(HERE / "echo_server.py")
SUB = [sys.executable, "-P", "-m", "subluminal"]

ALLOW_ALL = """\
policy_id: {policy_id}
version: "1"
mode: guardrails
defaults: {{decision_on_error: {on_error}}}
selectors: {{}}
rules:
"""
RULES = {
    "deny": "  - {{rule_id: no-{tool}, kind: deny, enabled: true, severity: warn,"
    " match: {{tool_name: {{glob: [{tool}]}}}},"
    " effect: {{action: BLOCK, reason_code: DENIED, message: not that}}}}\n",
    "budget": "  - {{rule_id: few, kind: budget, enabled: true, severity: warn, match: {{}},"
    " effect: {{budget: {{scope: run, limit_calls: {limit}, on_exceed: {on_exceed}}}}}}}\n",
}


def policy(*rules, policy_id="p", on_error="BLOCK"):
    """Returns the text of a policy; each rule is ("deny", {"tool": …}) or ("budget", {…})."""
    text = ALLOW_ALL.format(policy_id=policy_id, on_error=on_error)
    if not rules:
        return text.replace("rules:\n", "rules: []\n")
    return text + "".join(RULES[kind].format(**fields) for kind, fields in rules)


def deny(tool):
    return ("deny", {"tool": tool})


def budget(limit, on_exceed="BLOCK"):
    return ("budget", {"limit": limit, "on_exceed": on_exceed})


class Client:
    """A client of one shim."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        self._next_id = 0
        self._unread = b""
        self._answers = {}
        self.err = b""
        self.at_end = False

    def send(self, method, **params):
        """Sends a request. Returns its id."""
        self._next_id += 1
        self.write(
            json.dumps(
                {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
            ).encode()
            + b"\n"
        )
        return self._next_id

    def write(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(f"the shim is gone: {self.process.stderr.read()!r}") from None

    def ask(self, tool, args=None, meta=None):
        """Sends a tool call. Returns its id."""
        params = {"name": tool, "arguments": args or {}}
        return self.send("tools/call", **params, **({"_meta": meta} if meta else {}))

    def swallowed(self):
        """Waits until the shim has read everything that was sent to it."""
        pipe = self.process.stdin.fileno()

        def empty():
            left = fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4)
            return int.from_bytes(left, sys.byteorder) == 0

        wait_until(empty, "the shim to read its input")
        return self

    def answer(self, message_id):
        """Waits for the answer to a request, and returns it."""
        wait_until(lambda: self._answered(message_id), f"an answer to {message_id}; {self.err}")
        assert message_id in self._answers, f"the output ended; stderr: {self.err!r}"
        return self._answers.pop(message_id)

    def call(self, tool="echo", args=None, meta=None):
        """Calls a tool and waits for the answer."""
        return self.answer(self.ask(tool, args, meta))

    def code(self, tool="echo", args=None, meta=None):
        """Calls a tool. Returns 0 if it was executed, otherwise the error code."""
        return self.call(tool, args, meta).get("error", {}).get("code", 0)

    def ready(self, client=None):
        """Introduces the client by a name, if it has one, and waits for server and shim.

        Two answers are needed: the first may come before the shim has read its settings and
        entered its loop.
        """
        info = {"clientInfo": {"name": client, "version": "1"}} if client else {}
        assert "result" in self.answer(self.send("initialize", **info))
        assert "result" in self.answer(self.send("ping"))
        return self

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def wait(self):
        """Reads the output to its end. Returns the exit code."""
        wait_until(lambda: self._drained(), "the end of the shim's output")
        return self.process.wait(WITHIN_S)

    def all_answers(self):
        """Returns every unread answer, by id; to be called after `wait`."""
        return self._answers

    def _answered(self, message_id):
        self._read(0.0)
        return message_id in self._answers or self.at_end

    def _drained(self):
        self._read(0.02)
        return self.at_end

    def _read(self, timeout_s):
        fds = {self.process.stdout.fileno(): "out"}
        if self.process.stderr is not None:
            fds[self.process.stderr.fileno()] = "err"
        for fd in select.select(list(fds), [], [], timeout_s)[0]:
            data = os.read(fd, 65536)
            if fds[fd] == "err":
                self.err += data
            elif data:
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    for each in message if isinstance(message, list) else [message]:
                        self._answers[each.get("id")] = each
            else:
                self.at_end = True
                if self.process.stderr is not None:
                    self.err += self.process.stderr.read()


class Household(Marked):
    """One home with its shims and all their processes."""

    def __init__(self, tmp_path, home):
        self.tmp_path = tmp_path
        self.home = home
        super().__init__()
        self.log = tmp_path / "executed"
        self.cwd = tmp_path / "work"
        self.cwd.mkdir()
        self.clients = []

    def env(self, **more):
        kept = {
            k: v
            for k, v in os.environ.items()
            if k == PLAIN_POSIX or not k.startswith(("SUB_", "CLAUDE", "CODEX"))
        }
        return {**kept, "SUB_HOME": str(self.home), "SUB_TEST_TOKEN": self.token, **more}

    def server(self, *options, log=None):
        return [sys.executable, "-I", "-S", SERVER, str(log or self.log), *options]

    def start(
        self,
        *options,
        upstream=None,
        sub=SUB,
        words=(),
        run="run-1",
        via=(),
        popen=None,
        log=None,
        **env,
    ):
        """Starts a shim. `options` are those of the echo server."""
        env = self.env(**({"SUB_RUN_ID": run} if run else {}), **env)
        argv = upstream or self.server(*options, log=log)
        process = subprocess.Popen(
            [*via, *sub, "shim", "stdio", "--server", "echo", *words, "--", *argv],
            **{
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "start_new_session": True,
                "env": env,
                "cwd": self.cwd,
                **(popen or {}),
            },
        )
        client = Client(process)
        self.clients.append(client)
        return client

    def hurry(self):
        """Shortens the servers' grace, for tests that do not measure it."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.home / "config.toml").write_text("[servers.echo]\ngrace_ms = 100\n")

    def write_policy(self, text, path=None):
        """Replaces a policy file as a whole, as an editor does."""
        path = path or self.home / "policy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside = path.with_suffix(".new")
        aside.write_text(text)
        aside.replace(path)
        return path

    def executed(self):
        return self.log.read_text().split() if self.log.exists() else []

    # The journals.

    def journals(self):
        return journal_files(str(self.home / "journal"))

    def events(self, kind=None, run=None):
        """Proves every chain, and returns the events, each journal in order."""
        found = []
        chains = {}
        for file in self.journals():
            data = pathlib.Path(file.path).read_bytes()
            # A large line may be being written just now: a reader sees part of it.
            lines = data[: data.rfind(b"\n") + 1].splitlines()
            chain = chains.setdefault(file.shim, ChainCheck(file.shim))
            for line in lines:
                assert chain.feed(line) is None, chain.damage
                found.append(json.loads(line))
        return [
            event
            for event in found
            if kind in (None, event["type"]) and run in (None, event["run_id"])
        ]

    def wait_event(self, kind, **wanted):
        """Waits for the first event of a kind with these fields; `a__b` is the field b of a."""

        def look():
            return [event for event in self.events(kind) if _fits(event, wanted)]

        return wait_until(look, f"{kind} {wanted} in {[e['type'] for e in self.events()]}")[0]

    def run_end(self, run="run-1"):
        """Returns the `run` object of the run's last run_end."""
        ends = sorted(self.events("run_end", run), key=lambda event: event["ts"])
        assert ends, [event["type"] for event in self.events()]
        return ends[-1]["run"]

    def status(self, run="run-1"):
        return self.run_end(run)["status"]

    def ends(self):
        return [
            (e["status"], e.get("error", {}).get("class")) for e in self.events("tool_call_end")
        ]

    # The processes.

    def warden_of(self, client):
        """Returns the pid of a shim's warden."""
        return warden_of(client.pid)

    def forget(self, rounds):
        """Closes the clients of shims that are gone, and removes their journals."""
        for each in rounds:
            self._close(each.client)
            self.clients.remove(each.client)
            shutil.rmtree(self.home / "journal" / each.run, ignore_errors=True)

    def clean(self):
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for client in self.clients:
            client.process.kill()
            client.process.wait(WITHIN_S)
            self._close(client)
        for entry in descendants(os.getpid()):
            if entry.is_dead and entry.parent == os.getpid():
                os.waitpid(entry.pid, 0)

    @staticmethod
    def _close(client):
        for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _fits(event, wanted):
    for name, value in wanted.items():
        at = event
        for part in name.split("__"):
            at = at.get(part, {}) if isinstance(at, dict) else {}
        if at != value:
            return False
    return True
