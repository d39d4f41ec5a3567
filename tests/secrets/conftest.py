"""Makes the keychain fixtures known here."""

from tests.secrets.fixtures import (  # noqa: F401
    _service,
    defaults,
    here,
    keychain_here,
    locked_keychain,
    no_keychain,
)
