"""Secrets in plain text in an entry: in `env`, headers, arguments and URLs. Never their values."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from subluminal.importer.clients.description import Client
from subluminal.importer.document import URL_KEYS, Entry, EntryKind, env_of
from subluminal.importer.env_secrets import (
    has_secret_name,
    has_secret_shape,
    is_reference,
    read_note,
    without_references,
)
from subluminal.importer.text.tree import Kind, Node

_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\[.*\]|\{.*\}|(?:your|my|the|insert|replace|enter|add|put)[-_ ].*|"
    r".*(?:placeholder|change-?_?me|[-_ ]here|redacted)|(.)\1{2,}|x{3,}.*|todo|example.*|dummy.*|"
    r"none|null|true|false|test|secret|password|\.{3}|…"
)
_PATH = re.compile(r"(?:~|\.{1,2})?[/\\].*|[A-Za-z]:[\\/].*")
_HEADER_NAME = re.compile(r"(?i)authorization|cookie|.*(?:api-?key|token|secret|auth|password).*")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)\s+")
_ENV_OPTIONS = ("-e", "--env")
_MIN_CHARS = 6


class PlainSecret(NamedTuple):
    """A secret in an entry."""

    place: str
    """as people write it: `env.NAME`, `headers.NAME`, an argument, the URL"""
    node: Node
    bindable: bool = False
    """whether `sub import --bind-secrets` can move it"""


def secrets_of(client: Client, entry: Entry, words: Sequence[Node]) -> Iterator[PlainSecret]:
    """Yields the secrets of an entry. `words` is the server's own command line."""
    if entry.node.kind is not Kind.TABLE:
        return
    table = env_of(entry, client)
    key = client.shape.env_key
    for member in table.members if table else ():
        if _is_secret(member.name, member.node.string):
            bindable = entry.kind is EntryKind.STDIO
            yield PlainSecret(f"`{key}.{member.name}`", member.node, bindable)
    for name in ("headers", "http_headers"):
        headers = entry.node.get(name)
        for member in headers.members if headers else ():
            value = _SCHEME.sub("", member.node.string or "", count=1)
            as_name = "token" if _HEADER_NAME.fullmatch(member.name) else ""
            if _is_secret(as_name, value):
                yield PlainSecret(f"`{name}.{member.name}`", member.node)
    for url in URL_KEYS:
        node = entry.node.get(url)
        if node is not None and _url_has_secret(node.string or ""):
            yield PlainSecret(f"`{url}`", node)
    yield from _in_words(words)


def _in_words(words: Sequence[Node]) -> Iterator[PlainSecret]:
    before = ""
    for node in words:
        word = node.string or ""
        option, equals, value = word.partition("=")
        name = _as_variable(option if equals else before)
        given = value if equals else word
        if before in _ENV_OPTIONS and equals:
            name = option
        if before == "--header":
            header, _, given = word.partition(":")
            given = _SCHEME.sub("", given.strip(), count=1)
            name = "token" if _HEADER_NAME.fullmatch(header) else ""
        if _is_secret(name, given) or _url_has_secret(given):
            told = f"the argument of `{before}`" if before.startswith("-") and not equals else ""
            told = told or (f"the argument `{option}`" if equals else "an argument")
            yield PlainSecret(told, node)
        before = word


def _as_variable(option: str) -> str:
    return option.lstrip("-").replace("-", "_") if option.startswith("-") else ""


def _is_secret(name: str, value: str | None) -> bool:
    if not value or len(value) < _MIN_CHARS or read_note(value):
        return False
    if is_reference(value):
        return has_secret_shape(without_references(value))
    if _PLACEHOLDER.fullmatch(value):
        return False
    if has_secret_shape(value):
        return True
    is_plain = value.isdecimal() or " " in value or _PATH.fullmatch(value) or "://" in value
    return bool(name) and has_secret_name(name) and not is_plain


def _url_has_secret(text: str) -> bool:
    if "://" not in text:
        return False
    try:
        address = urlsplit(text)
        password, query = address.password, parse_qsl(address.query)
    except ValueError:
        return False
    return _is_secret("password", password) or any(_is_secret(*each) for each in query)
