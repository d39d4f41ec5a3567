"""Files that hold credentials, by name."""

import re
from collections.abc import Iterator

from subluminal.packs.shell.lines import Reading

_FOLDERS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"))
_NAMES = frozenset(
    (
        *(".netrc", "_netrc", ".git-credentials", ".pgpass", ".npmrc", ".pypirc", ".htpasswd"),
        *(".vault-token", ".dockercfg", "credentials.json", "client_secret.json", ".my.cnf"),
    )
)
_PATHS = re.compile(
    r"(?:^|.*/)(?:"
    r"\.env(?:\.(?!example$|sample$|template$|dist$)[^/]*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|\.docker/config\.json|\.config/gcloud(?:/.*)?|\.config/gh/hosts\.yml"
    r"|[^./][^/]*\.(?:pem|key|p12|pfx|jks|keystore)"
    r"|etc/g?shadow-?|proc/[^/]+/environ|run/secrets(?:/.*)?"
    r")",
    re.IGNORECASE,
)
_PIECES = re.compile("[=:,@]")
_TOKENS = re.compile(r"""[\s'"=:,@;|&<>()`$]+""")


def is_credential_file(path: str) -> bool:
    """Whether a path names a file, or is in a folder, that holds credentials."""
    parts = path.lower().rstrip("/").split("/")
    return (
        not _FOLDERS.isdisjoint(parts)
        or parts[-1] in _NAMES
        or _PATHS.fullmatch(path.rstrip("/")) is not None
    )


def credential_in(reading: Reading) -> str | None:
    """Returns a credential file that a line names; None if it names none."""
    return next((name for name in _names_in(reading) if is_credential_file(name)), None)


def _names_in(reading: Reading) -> Iterator[str]:
    yield from (target.path for target in reading.targets.paths)
    for argv in reading.targets.commands:
        for word in argv:
            yield word
            if not re.search(r"\s", word):
                yield from _PIECES.split(word)
    if not reading.is_clear:
        yield from _TOKENS.split(reading.text)
