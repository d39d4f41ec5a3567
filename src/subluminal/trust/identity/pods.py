"""Reads what Kubernetes tells a pod: variables, files of the downward API, the service account.

Nothing here fails: what cannot be read is left out. Of the service account's token only the owner's
name is used. It is not verified, and the token is not kept.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from subluminal.trust.identity.machine import read_text

_MAX_LABELS_CHARS = 16_384
"""Longest text of labels that is read: every event carries the labels."""
_MAX_NAME_CHARS = 253
_MAX_KEY_CHARS, _MAX_VALUE_CHARS = 317, 63
"""Kubernetes' own limits; anything longer is not a name or a label."""
SERVICE_ACCOUNT = "system:serviceaccount:"
"""What Kubernetes puts before `NAMESPACE:NAME` to name a service account."""
_GO_ESCAPES = dict(zip('abfnrtv\\"', '\a\b\f\n\r\t\v\\"', strict=True))
_GO_CODES = {"x": 2, "u": 4, "U": 8}
"""Number of hexadecimal digits after each of these escapes."""


class PodFiles(NamedTuple):
    """The directories in which Kubernetes describes a pod to itself."""

    service_account: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    pod_info: str = "/etc/podinfo"
    """a volume of the downward API, mounted where its documentation does"""


POD_FILES = PodFiles()


class Pod(NamedTuple):
    """What is known of a pod; None for what is not known."""

    namespace: str | None
    service_account: str | None
    name: str | None
    labels: dict[str, str] | None


def find_pod(environ: Mapping[str, str], files: PodFiles = POD_FILES) -> Pod:
    """Returns what is known of this pod; its manifest counts more than its service account."""
    account, info = files
    owner = _token_owner(f"{account}/token")
    labels = read_text(f"{info}/labels")
    return Pod(
        namespace=environ.get("POD_NAMESPACE")
        or _read_name(f"{info}/namespace")
        or _read_name(f"{account}/namespace")
        or owner.namespace,
        service_account=environ.get("POD_SERVICE_ACCOUNT")
        or _read_name(f"{info}/serviceaccount")
        or owner.service_account,
        name=environ.get("POD_NAME") or _read_name(f"{info}/name") or owner.pod,
        labels=None if labels is None else parse_labels(labels),
    )


def _read_name(path: str) -> str | None:
    name = read_text(path)
    return None if name is None or len(name) > _MAX_NAME_CHARS else name


def parse_labels(text: str) -> dict[str, str]:
    """Parses labels as the downward API writes them: lines of `key="value"`, quoted as in Go."""
    whole = text
    if len(text) > _MAX_LABELS_CHARS:
        whole = text[:_MAX_LABELS_CHARS].rpartition("\n")[0]
    pairs = (line.partition("=") for line in whole.split("\n") if "=" in line)
    labels = ((key, _unquoted(value)) for key, _, value in pairs)
    return {
        key: value
        for key, value in labels
        if len(key) <= _MAX_KEY_CHARS and len(value) <= _MAX_VALUE_CHARS
    }


def _unquoted(value: str) -> str:
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    inner = value[1:-1]
    if "\\" not in inner:
        return inner
    try:
        return _unescaped(inner)
    except (ValueError, OverflowError):  # not a quoted string of Go
        return inner


def _unescaped(text: str) -> str:
    """Resolves Go's escapes, which stand for bytes: several may be one character."""
    made = bytearray()
    rest = text
    while rest:
        plain, backslash, rest = rest.partition("\\")
        made += plain.encode()
        if not backslash:
            break
        kind, rest = rest[:1], rest[1:]
        if kind in _GO_CODES:
            digits, rest = rest[: _GO_CODES[kind]], rest[_GO_CODES[kind] :]
            code = int(digits, 16)
            made += bytes([code]) if kind == "x" else chr(code).encode()
        elif kind in _GO_ESCAPES:
            made += _GO_ESCAPES[kind].encode()
        else:
            raise ValueError(kind)
    return made.decode("utf-8", "replace")


class _Named(msgspec.Struct, frozen=True):
    name: str | None = None


class _Bound(msgspec.Struct, frozen=True):
    pod: _Named = _Named()


class _Claims(msgspec.Struct, frozen=True):
    sub: str = ""
    bound: _Bound = msgspec.field(default=_Bound(), name="kubernetes.io")


class _Owner(NamedTuple):
    namespace: str | None = None
    service_account: str | None = None
    pod: str | None = None


def _token_owner(path: str) -> _Owner:
    """Returns the owner of a token: its subject is `system:serviceaccount:NAMESPACE:NAME`."""
    token = read_text(path)
    if token is None:
        return _Owner()
    import base64  # only a pod needs it

    payload = token.partition(".")[2].partition(".")[0]
    try:
        text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        claims = msgspec.json.decode(text, type=_Claims)
    except (ValueError, RecursionError):
        return _Owner()
    namespace, _, name = claims.sub.removeprefix(SERVICE_ACCOUNT).partition(":")
    if not claims.sub.startswith(SERVICE_ACCOUNT) or not name:
        return _Owner(pod=claims.bound.pod.name)
    return _Owner(namespace, name, claims.bound.pod.name)
