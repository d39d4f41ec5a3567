"""Hosts of URLs and of `user@host:path`."""

import re

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)", re.DOTALL)
_AUTHORITY = re.compile(
    r"(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?(\[[0-9A-Fa-f:.]+\]|[^@:%\s\\{}\[\]]*)(?::[0-9]*)?"
)
_REMOTE = re.compile(r"(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?!//)\S*")
_NAME = re.compile(
    r"(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?:[/?#].*)?"
)


def host_of(text: str) -> tuple[str, str] | None:
    """Returns (host, reason why it cannot be told) of a URL; None if the text is not a URL."""
    found = _URL.match(text)
    if found is None:
        return None
    authority = _AUTHORITY.fullmatch(found[2])
    if authority is None:
        return "", f"the host of `{text[:80]}` cannot be told"
    return authority[1].strip("[]").lower(), ""


def urls_in(text: str) -> list[str]:
    """Returns the URLs that a text contains."""
    return re.findall(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>`]+", text)


def remote_host(word: str) -> str | None:
    """Returns the host of `user@host:path`; None if the word is something else."""
    found = _REMOTE.fullmatch(word)
    return None if found is None else found[1].strip("[]")


def named_host(word: str) -> str | None:
    """Returns the host of an operand that is a host or a URL without a scheme."""
    found = _NAME.fullmatch(word)
    return None if found is None else found[1].strip("[]")
