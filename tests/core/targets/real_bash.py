"""Runs lines in a real bash, in a directory of stub programs that record how they are called."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

_STUB = """#!{bash}
printf '%s\\0' "${{0##*/}}" "$@" $'\\x1e' >> "$STUB_RECORD"
{rest}
"""
_SUDO = """while [[ $1 == -* || $1 == *=* ]]; do
  case $1 in -u|-g) shift 2;; *=*) export "$1"; shift;; *) shift;; esac
done
exec "$@"
"""
_REAL = ("env", "xargs", "timeout", "nohup", "nice", "find", "setsid", "stdbuf")
_SHELLS = ("bash", "sh")
PROGRAMS = ("git", "npm", "make", "rm", "touch", "ls", "grep", "p0", "p1", "p2", "p3", "python3")
"""Stubs. `p1` and `p3` fail; the others succeed."""
_WAIT_S = 5


class Ran(NamedTuple):
    """What a line did."""

    commands: list[list[str]]
    """programs that were started, each with its arguments"""
    new_files: set[str]
    """files that are there now, and were not before"""


class RealBash:
    """A directory of stubs, a home and a working directory below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.bin, self.home, self.work = folder / "bin", folder / "home", folder / "work"
        self._record = folder / "record"
        bash = shutil.which("bash")
        assert bash is not None, "the tests of the shell reader need bash"
        for each in (self.bin, self.home):
            each.mkdir()
        for name in PROGRAMS:
            self._stub(name, bash, "exit 1" if name in ("p1", "p3") else "exit 0")
        self._stub("cat", bash, f'exec {shutil.which("cat")} "$@"')
        self._stub("sudo", bash, _SUDO)
        for name in (*_REAL, *_SHELLS):
            real = shutil.which(name)
            if real is not None:
                self._stub(name, bash, f'exec {real} "$@"')

    def _stub(self, name: str, bash: str, rest: str) -> None:
        path = self.bin / name
        path.write_text(_STUB.format(bash=bash, rest=rest))
        path.chmod(0o755)

    def clear(self) -> None:
        """Makes the working directory anew: some files, some folders, a link that leads out."""
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("src", "docs", "src/deep"):
            (self.work / name).mkdir(parents=True)
        for name in ("a.py", "b.py", "c.txt", "src/d.py", "-x.py", "with space"):
            (self.work / name).write_text("")
        (self.work / "out").symlink_to(self.home)

    def run(self, line: str) -> Ran:
        """Runs a line in a fresh directory."""
        self.clear()
        self._record.write_bytes(b"")
        before = self._files()
        env = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "STUB_RECORD": str(self._record),
            "LC_ALL": "C.UTF-8",
        }
        bash = shutil.which("bash")
        assert bash is not None
        with subprocess.Popen(
            [bash, "--norc", "--noprofile", "-c", line],
            cwd=self.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                process.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _end_group(process.pid)
        return Ran(self._recorded(), self._files() - before)

    def _recorded(self) -> list[list[str]]:
        text = self._record.read_bytes().decode("utf-8", "surrogateescape")
        calls = [each.split("\0")[:-1] for each in text.split("\x1e\0")[:-1]]
        return [[re.sub("^/dev/fd/[0-9]+$", "/dev/fd/63", word) for word in call] for call in calls]

    def _files(self) -> set[str]:
        return {
            os.path.join(where, name)
            for top in (self.work, self.home)
            for where, _, names in os.walk(top)
            for name in names
        }


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
