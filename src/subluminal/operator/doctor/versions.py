"""What runs here: Python, our libraries, SQLite."""

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from subluminal import __version__
from subluminal.config.places import Places
from subluminal.operator.doctor.checks import Check

_NEEDED = ("msgspec", "PyYAML", "google-re2")
_SQLITE = (3, 51, 3)
"""Before it, a crash during a WAL reset could lose committed rows."""


def check(_places: Places) -> Iterator[Check]:
    python = ".".join(map(str, sys.version_info[:3]))
    supported = sys.version_info >= (3, 11)
    detail = f"sub {__version__} on Python {python}"
    yield Check("versions", supported, detail, None if supported else "Python 3.11 or newer")
    missing = [name for name in _NEEDED if not _installed(name)]
    found = ", ".join(f"{name} {_installed(name)}" for name in _NEEDED if _installed(name))
    yield Check(
        "libraries",
        not missing,
        f"missing: {', '.join(missing)}" if missing else found,
        "install subluminal again" if missing else None,
    )
    yield _sqlite()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _sqlite() -> Check:
    if find_spec("apsw") is None:
        return Check(
            "sqlite", False, "the ledger's libraries are missing", "install `subluminal[daemon]`"
        )
    import apsw

    text = apsw.sqlite_lib_version()
    ok = tuple(int(part) for part in text.split(".")[:3]) >= _SQLITE
    wanted = ".".join(map(str, _SQLITE))
    hint = None if ok else f"SQLite {wanted} or newer comes with a newer `apsw`"
    return Check("sqlite", ok, f"SQLite {text}", hint)
