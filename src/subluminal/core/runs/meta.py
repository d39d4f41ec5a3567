"""Reads what a person or a CI job says about a run: `sub run --meta`, and SUB_RUN_META.

It becomes `meta` of the run_start event (Pack 1.4). The shim loads this module only if SUB_RUN_META
is set.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from subluminal.config import env
from subluminal.errors import SubluminalError

MAX_KEYS = 32
MAX_KEY_CHARS = 64
MAX_BYTES = 8_192
"""Longest meta as JSON. It is one part of one event."""

RESERVED = (
    *("env_source", "parent_run_id", "servers"),
    *("strict", "fail_on", "allow_silent"),
)
"""Keys that Subluminal writes itself."""


class InvalidMeta(SubluminalError):
    """Text that is not the meta of a run."""


def read_meta(text: str) -> dict[str, Any]:
    """Reads SUB_RUN_META: a JSON object, or `KEY=VALUE` pairs separated by commas.

    Raises InvalidMeta.
    """
    if not text.lstrip().startswith("{"):
        return read_pairs(pair for pair in text.split(",") if pair.strip())
    try:
        found = msgspec.json.decode(text.encode("utf-8", "surrogateescape"), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        name = env.SUB_RUN_META.name
        raise InvalidMeta(f"{name} is not a JSON object: {error}", hint=_HINT) from None
    return checked_meta(found)


def read_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Reads `KEY=VALUE` pairs; the last value of a key counts. Raises InvalidMeta."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidMeta(f"`{pair}` is not KEY=VALUE", hint=_HINT)
        found[key.strip()] = value
    return checked_meta(found)


def checked_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Returns the meta. Raises InvalidMeta if it is too large, or uses a key of ours."""
    if len(meta) > MAX_KEYS:
        raise InvalidMeta(f"the meta of a run has more than {MAX_KEYS} keys")
    for key in meta:
        if not key or len(key) > MAX_KEY_CHARS or not key.isprintable():
            what = f"a key of 1 to {MAX_KEY_CHARS} printable characters"
            raise InvalidMeta(f"`{key[:MAX_KEY_CHARS]}` is not {what}", hint=_HINT)
        if key in RESERVED:
            raise InvalidMeta(f"`sub` itself sets the key `{key}`", hint="choose another key")
    try:
        size = len(msgspec.json.encode(meta))
    except UnicodeEncodeError:
        raise InvalidMeta("the meta of a run is not valid UTF-8") from None
    if size > MAX_BYTES:
        raise InvalidMeta(f"the meta of a run is larger than {MAX_BYTES} bytes")
    return meta


def given_meta(text: str) -> dict[str, Any]:
    """Returns the meta in SUB_RUN_META; nothing if the value is not valid."""
    try:
        return read_meta(text)
    except InvalidMeta:
        return {}


def masked_meta(meta: Mapping[str, Any], mask: Callable[[str], str]) -> dict[str, Any]:
    """Returns the meta with secrets masked (unprintable-secrets)."""
    text = mask(msgspec.json.encode(dict(meta)).decode())
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}  # a secret is part of the JSON itself


_HINT = "write KEY=VALUE, such as issue_id=42"
