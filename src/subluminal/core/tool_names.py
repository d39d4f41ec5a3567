"""The exact names of servers' tools, for doors that see them only in a client's spelling.

Some clients write `get-sum` as `get_sum` in their hooks. A call is one call at both doors only if
both know its exact name, so the door that sees a server's own list leaves it here. All names are
kept: `get_sum` may be a tool too, and then nobody can tell which of the two is meant.
"""

import os
from collections.abc import Callable, Iterable

import msgspec

from subluminal.config.places import Places, encode_name, make_private_dir
from subluminal.config.plain_files import plain_file

_MAX_BYTES = 1 << 18
"""Largest list that is kept. Of a server with more names than that, none is known."""
_decode = msgspec.json.Decoder(list[str]).decode


def remember_tools(places: Places, server_name: str, names: Iterable[str]) -> None:
    """Stores the names of a server's tools, with those that it had before."""
    told, known = set(names), set(_known(places, server_name))
    if told <= known:
        return
    text = msgspec.json.encode(sorted(told | known))
    if len(text) > _MAX_BYTES:
        text = b"[]"
    path = _path(places, server_name)
    aside = f"{path}.{os.getpid()}"
    try:
        make_private_dir(os.path.dirname(path))
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text)
        os.replace(aside, path)
    except (OSError, UnicodeEncodeError):
        return  # the call is then decided at both doors


def exact_name(places: Places, server_name: str, spelled: str, spell: Callable[[str], str]) -> str:
    """Returns the name of the only known tool that a client spells so; else the spelling itself."""
    found = [name for name in _known(places, server_name) if spell(name) == spelled]
    return found[0] if len(found) == 1 else spelled


def _known(places: Places, server_name: str) -> list[str]:
    try:
        with open(_path(places, server_name), "rb", opener=plain_file) as file:
            return _decode(file.read(_MAX_BYTES))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def _path(places: Places, server_name: str) -> str:
    return os.path.join(places.state, "tools", encode_name(server_name))
