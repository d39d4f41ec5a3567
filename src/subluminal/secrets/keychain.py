"""The operating system's keychain, through the `keyring` library (extra `[keychain]`).

Imported only where a binding or a command needs it: keyring takes 100 ms to load. A keychain may
ask a person to unlock it; nobody may be there, so every call is bounded in time.
"""

import threading
from collections.abc import Callable
from typing import Any

from subluminal.errors import SecretUnavailable

SERVICE = "subluminal"
"""Under this name the keychain's own viewer shows our entries."""


def read(name: str, wait_ms: int) -> str | None:
    """Returns a value, None if there is none."""
    value: str | None = _call(lambda keyring: keyring.get_password(SERVICE, name), wait_ms)
    return value


def write(name: str, value: str, wait_ms: int) -> None:
    """Stores a value, in place of the one before."""
    _call(lambda keyring: keyring.set_password(SERVICE, name, value), wait_ms)


def delete(name: str, wait_ms: int) -> None:
    """Removes an entry that is there."""
    _call(lambda keyring: keyring.delete_password(SERVICE, name), wait_ms)


def backend(wait_ms: int) -> str:
    """Names the keychain in use. Raises SecretUnavailable if there is none."""

    def named(keyring: Any) -> str:
        found = keyring.get_keyring()
        if found.priority <= 0:
            raise keyring.errors.NoKeyringError
        return str(found.name)

    name: str = _call(named, wait_ms)
    return name


def _call(use: Callable[[Any], Any], wait_ms: int) -> Any:
    outcome: list[Any] = []
    failure: list[SecretUnavailable] = []

    def work() -> None:
        try:
            outcome.append(use(_keyring()))
        except SecretUnavailable as error:
            failure.append(error)
        except Exception as error:  # noqa: BLE001 - backends raise what their systems raise
            failure.append(_translated(error))

    # A thread, because a D-Bus prompt cannot be given a deadline. It dies with the process.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(wait_ms / 1000)
    if thread.is_alive():
        raise SecretUnavailable(
            f"the keychain did not answer within {wait_ms} ms: it is locked, or waits for a person",
            hint="unlock it, or raise `keychain_wait_ms` in `[secrets]`",
        )
    if failure:
        raise failure[0]
    return outcome[0]


def _keyring() -> Any:
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise SecretUnavailable(
            "the keychain needs the `keyring` package", hint="install `subluminal[keychain]`"
        ) from None
    return keyring


def _translated(error: Exception) -> SecretUnavailable:
    from keyring import errors

    if isinstance(error, errors.NoKeyringError):
        return SecretUnavailable(
            "there is no keychain here", hint='use the file store: `source = "file"`'
        )
    if isinstance(error, errors.KeyringLocked):
        return SecretUnavailable("the keychain is locked", hint="unlock it, then try again")
    detail = str(error).splitlines()[0][:200].lower() if str(error) else "no reason given"
    return SecretUnavailable(f"the keychain failed: {detail}")
