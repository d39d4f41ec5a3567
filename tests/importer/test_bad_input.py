"""What cannot be imported surely is refused: a clear error, exit 2, and nothing changed anywhere."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from subluminal.config.places import places
from subluminal.importer import files
from subluminal.importer.backups import list_backups
from subluminal.importer.files import MAX_CONFIG_BYTES

GOOD = '{"mcpServers": {"a": {"command": "x"}}}'
Write = Callable[[str, str | bytes], Path]


def state_of(folder: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every file and link below a folder, without lock files."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[str(path)] = (mode, os.readlink(path))
        elif path.is_file() and path.suffix != ".lock" and path.stat().st_size < MAX_CONFIG_BYTES:
            found[str(path)] = (mode, path.read_bytes())
    return found


@contextmanager
def nothing_changes(*folders: Path) -> Iterator[None]:
    before = [state_of(folder) for folder in folders]
    yield
    assert [state_of(folder) for folder in folders] == before


def refused(sub: Any, user_home: Path, own_home: Path, *words: str) -> str:
    """Runs an import that must be refused, and returns its error message."""
    with nothing_changes(user_home, own_home):
        ran = sub("import", *(words or ("claude", "--yes")))
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert not list_backups(places(os.environ))
    return str(ran.err)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "claude.json:1:1: the file is empty"),
        (b" \n\t", "claude.json:2:2: the file is empty"),
        (b"// only this", "the file has no value, only comments"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b'{\n  "a": 1\n  "b": 2}', "claude.json:3:3: expected `,` or `}`"),
        (b"{'a': 1}", "claude.json:1:2: expected a name in double quotes"),
        (b'{"a" 1}', "claude.json:1:6: expected `:`"),
        (b'{"a": [1, 2}', "claude.json:1:12: expected `,` or `]`"),
        (b'{"a": "x\ny"}', "claude.json:1:7: a string is not closed"),
        (b'{"a": "\\x"}', "claude.json:1:7: a string"),
        (b'{"a": 01}', "claude.json:1:7: expected a value"),
        (b'{"a": tru}', "claude.json:1:7: expected a value"),
        (b'{"a": NaN}', "claude.json:1:7: expected a value"),
        (b'{"a": 1} /* x', "claude.json:1:10: a comment is not closed"),
        (b'{"a": 1}}', "claude.json:1:9: unexpected text after the end"),
        (b'{"a":', "claude.json:1:6: expected a value"),
        (b"[" * 5000, "nested too deeply"),
        (b"[]", "the file does not hold an object"),
        (b'{"mcpServers": {"a": {}, "a": {}}}', "`a` occurs twice"),
        (b'{"mcpServers": {}, "mcpServers": {}}', "`mcpServers` occurs twice"),
        (b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "`command` occurs twice"),
        (b"\x7fELF\x02\x01\x00\x00\xff", "claude.json:1:9: the file is not UTF-8 text"),
        (b'{"a": 1}\x00', "claude.json:1:9: the file holds a NUL character"),
        ('{"größe": x'.encode("utf-16"), "not UTF-8 text"),
    ],
)
def test_files_that_do_not_parse(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    content: bytes,
    said: str,
) -> None:
    write(".claude.json", content)
    assert said in refused(sub, user_home, own_home)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = 1\nb = \n", "config.toml:2:5: invalid value"),
        (b"a = 1\na = 2", "config.toml:2:6: cannot overwrite a value"),
        (b"[mcp_servers.x]\ncommand = 'y'\n[mcp_servers.x]\n", "config.toml:3:"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"1" * 5000, "integer"),
        (b"\x00\x01\x02\xff", "not UTF-8 text"),
    ],
)
def test_toml_that_does_not_parse(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    content: bytes,
    said: str,
) -> None:
    write(".codex/config.toml", content)
    assert said in refused(sub, user_home, own_home, "codex", "--yes")


def test_a_directory(sub: Any, program: Path, user_home: Path, own_home: Path) -> None:
    (user_home / ".claude.json").mkdir()
    assert "is a directory" in refused(sub, user_home, own_home)


def test_a_fifo(sub: Any, program: Path, user_home: Path, own_home: Path) -> None:
    os.mkfifo(user_home / ".claude.json")
    assert "is not a regular file" in refused(sub, user_home, own_home)


def test_fifty_megabytes(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path
) -> None:
    file = write(".claude.json", b'{"a": "' + b"x" * (50 << 20) + b'"}')
    stamp = file.stat()
    assert "is larger than 16 MiB" in refused(sub, user_home, own_home)
    assert file.stat() == stamp


def test_no_permission(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path
) -> None:
    file = write(".claude.json", GOOD)
    sub("import", "claude", "--dry-run")  # what is loaded now need not be readable later
    file.chmod(0)
    with as_another_user():
        ran = sub("import", "claude", "--path", str(file))
    assert ran.code == 2
    assert "permission denied" in ran.err
    file.chmod(0o600)
    assert file.read_text() == GOOD


@contextmanager
def as_another_user() -> Iterator[None]:
    """Root reads everything, so it is not root for a moment."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_file(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path
) -> None:
    write(".claude.json", GOOD).chmod(0o444)
    assert "is read-only" in refused(sub, user_home, own_home)


def test_a_read_only_file_system(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(".claude.json", GOOD)

    def open_(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(user_home)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest, **named)

    real = os.open
    monkeypatch.setattr(os, "open", open_)
    assert "read-only file system" in refused(sub, user_home, own_home)


def test_a_full_disk(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(".claude.json", GOOD)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert "no space left on device" in refused(sub, user_home, own_home).lower()


def test_a_home_that_cannot_be_written(
    sub: Any, write: Write, program: Path, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no import without a backup."""
    file = write(".claude.json", GOOD)
    write("occupied", "a file")
    monkeypatch.setenv("SUB_HOME", str(user_home / "occupied"))
    ran = sub("import", "claude")
    assert ran.code == 2
    assert file.read_text() == GOOD


def test_hard_links(sub: Any, write: Write, program: Path, user_home: Path, own_home: Path) -> None:
    os.link(write("other.json", GOOD), user_home / ".claude.json")
    assert "hard links" in refused(sub, user_home, own_home)


def test_one_bad_file_keeps_all_others_as_they_are(
    sub: Any, write: Write, program: Path, user_home: Path, own_home: Path
) -> None:
    write(".claude.json", GOOD)
    write(".mcp.json", "{")
    assert ".mcp.json:1:2" in refused(sub, user_home, own_home)


def test_a_later_file_that_cannot_be_written_takes_the_earlier_ones_back(
    sub: Any,
    write: Write,
    program: Path,
    user_home: Path,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write(".claude.json", GOOD)
    write(".mcp.json", GOOD)
    real = files._write_like

    def write_like(path: str, data: bytes, model: files.ReadFile) -> None:
        if model.path.endswith(".mcp.json"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(path, data, model)

    monkeypatch.setattr(files, "_write_like", write_like)
    assert "input/output error" in refused(sub, user_home, own_home)


class Meddler:
    """Changes a file between the moment it is read and the moment it is replaced."""

    def __init__(self, file: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = file
        self.times = times
        self._real = files._write_like
        monkeypatch.setattr(files, "_write_like", self._write_like)

    def _write_like(self, path: str, data: bytes, model: files.ReadFile) -> None:
        self._real(path, data, model)
        if self.times and model.path == str(self.file):
            self.times -= 1
            self.file.write_text(self.file.read_text() + "\n")


def test_a_file_that_changes_meanwhile_is_read_again(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(".claude.json", GOOD)
    Meddler(file, 2, monkeypatch)
    assert sub("import", "claude", "--no-hooks").code == 0
    assert file.read_text().endswith("}\n\n")
    (backup,) = list_backups(places(os.environ))
    assert backup.before().decode() == GOOD + "\n\n"
    assert sub("restore", "claude").code == 0
    assert file.read_text() == GOOD + "\n\n"


def test_a_file_that_changes_all_the_time_is_given_up(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(".claude.json", GOOD)
    Meddler(file, 100, monkeypatch)
    ran = sub("import", "claude")
    assert ran.code == 2
    assert "another program keeps changing" in ran.err
    assert file.read_text().rstrip("\n") == GOOD
    assert not list_backups(places(os.environ))


def test_a_change_in_the_last_moment_is_not_lost(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look, and before the file is replaced: only an exchange can notice."""
    file = write(".claude.json", GOOD)
    real = files.exchange
    news = iter([GOOD + " "])

    def exchange(one: str, other: str) -> bool:
        new = next(news, None)
        if new:
            file.write_text(new)
        return real(one, other)

    monkeypatch.setattr(files, "exchange", exchange)
    assert sub("import", "claude").code == 0
    assert file.read_text().endswith("} ")
    assert "shim" in file.read_text()


def test_a_writer_that_never_stops_loses_nothing(
    sub: Any, write: Write, program: Path, user_home: Path
) -> None:
    """Imports and a client's own rewrites, at once: the client's last version is kept."""
    file = write(".claude.json", GOOD)
    stop = threading.Event()
    written = 0

    def client() -> None:
        nonlocal written
        while not stop.is_set():
            written += 1
            new = user_home / "new.json"
            new.write_text(f'{{"n": {written}, "mcpServers": {{"a": {{"command": "x"}}}}}}')
            os.replace(new, file)

    thread = threading.Thread(target=client)
    thread.start()
    try:
        codes = {sub("import", "claude", "--yes").code for _ in range(10)}
    finally:
        stop.set()
        thread.join()
    assert codes <= {0, 2}
    assert f'"n": {written},' in file.read_text()
