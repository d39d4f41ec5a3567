"""The exact names of servers' tools, for doors that see them only in a client's spelling.

Some clients write `get-sum` as `get_sum` in their hooks. A call is one call at both doors only if
both know its exact name, so the door that sees a server's own list leaves it here. Names that every
client spells alike are not stored.
"""

import os
import re
from collections.abc import Callable, Iterable

import msgspec

from subluminal.config.places import Places, encode_name, make_private_dir
from subluminal.config.plain_files import plain_file

_PLAIN = re.compile(r"[A-Za-z0-9_]*")
_MAX_NAMES = 4_096
_MAX_BYTES = 1 << 18
_decode = msgspec.json.Decoder(list[str]).decode


def remember_tools(places: Places, server_name: str, names: Iterable[str]) -> None:
    """Stores names of a server's tools that a client may spell differently."""
    odd = {name for name in names if not _PLAIN.fullmatch(name)}
    known = set(_known(places, server_name)) if odd else odd
    if odd <= known:
        return
    text = msgspec.json.encode(sorted(odd | known)[:_MAX_NAMES])
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
