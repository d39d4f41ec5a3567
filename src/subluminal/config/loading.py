"""Reads `config.toml`. Every problem in it is told at once, with its line."""

import tomllib
from collections.abc import Iterator
from typing import Any

from subluminal.config.settings import Settings
from subluminal.config.toml_lines import line_of
from subluminal.contracts.shape import misfits, struct_of
from subluminal.errors import InvalidInput, Problem, SubluminalError

MAX_SETTINGS_BYTES = 1_048_576


def load_settings(path: str) -> Settings:
    """Returns the settings in a file; the defaults if there is no file."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise SubluminalError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}"
        ) from None
    if len(data) > MAX_SETTINGS_BYTES:
        raise SubluminalError(f"`{path}` is larger than {MAX_SETTINGS_BYTES} bytes")
    return parse_settings(data, path)


def parse_settings(data: bytes, path: str) -> Settings:
    """Returns the settings in TOML text, or raises InvalidInput with every problem."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput([Problem("not UTF-8", path, line)]) from None
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
    return settings


def _problems(value: dict[str, Any], text: str, path: str) -> Iterator[Problem]:
    for misfit in misfits(value, Settings):
        line = line_of(text, misfit.path)
        names = [part for part in misfit.path if isinstance(part, str)]
        section = f" in `[{'.'.join(names[:-1])}]`" if misfit.at_key and names[:-1] else ""
        named = "" if misfit.at_key or not names else f"`{names[-1]}`: "
        yield Problem(f"{named}{misfit.message}{section}", path, line, hint=misfit.hint)


def _syntax_problem(error: Exception, path: str) -> Problem:
    # tomllib puts the place at the end of its message, until 3.14 only there.
    message, _, place = str(error).partition(" (at ")
    line = column = 0
    words = place.rstrip(")").replace(",", "").split()
    if len(words) == 4:
        line, column = int(words[1]), int(words[3])
    return Problem(message[:1].lower() + message[1:], path, line, column)
