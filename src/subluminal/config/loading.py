"""Reads `config.toml`, and reports every problem in it at once, with its line."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from subluminal.config.plain_files import plain_file
from subluminal.config.settings import POSTGRES_SCHEMES, Settings, TargetSettings
from subluminal.contracts.shape import misfits, struct_of
from subluminal.errors import InvalidInput, Problem, SubluminalError

MAX_SETTINGS_BYTES = 1_048_576

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")


def load_settings(path: str) -> Settings:
    """Returns the settings in a file; the defaults if the file does not exist."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            data = file.read(MAX_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise SubluminalError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}"
        ) from None
    if len(data) > MAX_SETTINGS_BYTES:
        raise SubluminalError(
            f"`{path}` is larger than {MAX_SETTINGS_BYTES} bytes, so it is not a settings file"
        )
    return parse_settings(data, path)


def parse_settings(data: bytes, path: str) -> Settings:
    """Parses settings. Raises InvalidInput with every problem."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput([Problem("the file is not UTF-8 text", path, line)]) from None
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise InvalidInput([Problem("nested too deeply", path)]) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput([_syntax_problem(error, path)]) from None
    problems = list(_problems(value, text, path))
    if problems:
        raise InvalidInput(problems)
    settings: Settings = struct_of(value, Settings)
    problems = [
        *_target_problems(settings, text, path),
        *_executions_problems(settings, text, path),
        *_key_file_problems(settings, text, path),
    ]
    if problems:
        raise InvalidInput(problems)
    return settings


def _target_problems(settings: Settings, text: str, path: str) -> Iterator[Problem]:
    """Finds tools in `[servers.NAME.targets]` whose entry names no argument."""
    for server, own in settings.servers.items():
        for tool, given in own.targets.items():
            line = line_of(text, ("servers", server, "targets", tool))
            if given == TargetSettings(access=given.access):
                hint = 'write the name of an argument, such as `path = "file"`'
                message = f"`{tool}`: needs `command`, `path`, `url` or `patch`"
                yield Problem(message, path, line, hint=hint)
            elif given.access is not None and given.path is None:
                yield Problem(f"`{tool}`: `access` has no effect without `path`", path, line)


def _executions_problems(settings: Settings, text: str, path: str) -> Iterator[Problem]:
    """Finds an unknown kind of execution ledger. The value is not shown: it may be a password."""
    given = settings.kernel.executions
    if given not in ("sqlite", "off") and not given.startswith(POSTGRES_SCHEMES):
        line = line_of(text, ("kernel", "executions"))
        hint = "write `sqlite`, `postgresql://USER@HOST/DATABASE` or `off`"
        yield Problem("`executions`: not a ledger that `sub` knows", path, line, hint=hint)


def _key_file_problems(settings: Settings, text: str, path: str) -> Iterator[Problem]:
    """Finds a key file with a relative path, which would be another file in each directory."""
    given = settings.policy.hmac_key_file
    if given is not None and not given.startswith(("/", "~/")):
        line = line_of(text, ("policy", "hmac_key_file"))
        hint = "write an absolute path: an agent can write files where it works"
        yield Problem("`hmac_key_file`: not an absolute path", path, line, hint=hint)


def _problems(value: dict[str, Any], text: str, path: str) -> Iterator[Problem]:
    for misfit in misfits(value, Settings):
        line = line_of(text, misfit.path)
        names = [part for part in misfit.path if isinstance(part, str)]
        section = f" in `[{'.'.join(names[:-1])}]`" if misfit.at_key and names[:-1] else ""
        named = "" if misfit.at_key or not names else f"`{names[-1]}`: "
        yield Problem(f"{named}{misfit.message}{section}", path, line, hint=misfit.hint)


def _syntax_problem(error: Exception, path: str) -> Problem:
    # Before Python 3.14 the place is only found at the end of the message.
    message, _, place = str(error).partition(" (at ")
    line = column = 0
    words = place.rstrip(")").replace(",", "").split()
    if len(words) == 4:
        line, column = int(words[1]), int(words[3])
    return Problem(message[:1].lower() + message[1:], path, line, column)


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """Returns the line of a key in valid TOML text; 0 if it is not found.

    tomllib returns values without their places. This reads only headers and `key =` lines: a key
    inside an inline table or a multi-line value gets the line where that value begins.
    """
    places = _places(text)
    for length in range(len(path), 0, -1):
        line = places.get(path[:length])
        if line is not None:
            return line
    return 0


def _places(text: str) -> dict[tuple[str | int, ...], int]:
    places: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        header = _HEADER.match(line)
        if header:
            table = _resolve(_parts(header.group(2)), counts)
            if header.group(1) == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = (*table, index)
            places.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            places.setdefault(table + _parts(key.group(1)), number)
    return places


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))


def _resolve(
    names: tuple[str | int, ...], counts: dict[tuple[str | int, ...], int]
) -> tuple[str | int, ...]:
    """Inserts indexes: a header below an array of tables refers to its last element."""
    path: tuple[str | int, ...] = ()
    for position, name in enumerate(names):
        path = (*path, name)
        if path in counts and position < len(names) - 1:
            path = (*path, counts[path] - 1)
    return path
