"""The operating system's keychain, through the `keyring` library (extra `[keychain]`).

keyring takes 100 ms to import, so it is imported only when a binding or a command needs it. A
keychain may ask the user to unlock it while nobody is there, so every call has a time limit.
"""

import threading
from collections.abc import Callable
from typing import Any

from subluminal.errors import SecretUnavailable

SERVICE = "subluminal"
"""Name of our entries in the keychain's own viewer."""


def read(name: str, wait_ms: int) -> str | None:
    """Returns a value; None if there is no entry of that name."""
    value: str | None = _call(lambda keyring: keyring.get_password(SERVICE, name), wait_ms)
    return value


def write(name: str, value: str, wait_ms: int) -> None:
    """Stores a value, replacing the one before."""
    _call(lambda keyring: keyring.set_password(SERVICE, name, value), wait_ms)


def delete(name: str, wait_ms: int) -> None:
    """Removes an entry that exists."""
    _call(lambda keyring: keyring.delete_password(SERVICE, name), wait_ms)


def backend(wait_ms: int) -> str:
    """Returns the name of the keychain in use. Raises SecretUnavailable if there is none."""

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

    # A thread, because a D-Bus prompt has no timeout. It ends with the process.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(wait_ms / 1000)
    if thread.is_alive():
        raise SecretUnavailable(
            f"the keychain did not answer within {wait_ms} ms; it is probably locked",
            hint="unlock it and try again, or raise `keychain_wait_ms` in `[secrets]`",
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
            "the keychain needs the `keyring` package",
            hint="install it with `pip install 'subluminal[keychain]'`",
        ) from None
    return keyring


def _translated(error: Exception) -> SecretUnavailable:
    from keyring import errors

    if isinstance(error, errors.NoKeyringError):
        return SecretUnavailable(
            "there is no keychain here", hint="use the file store instead: `--source file`"
        )
    if isinstance(error, errors.KeyringLocked):
        return SecretUnavailable("the keychain is locked", hint="unlock it, then try again")
    detail = str(error).splitlines()[0][:200].lower() if str(error) else "it gave no reason"
    return SecretUnavailable(f"the keychain failed: {detail}")
