"""Makes the keychain fixtures and the command runner known here."""

from tests.cli.conftest import sub  # noqa: F401
from tests.secrets.fixtures import (  # noqa: F401
    _service,
    defaults,
    here,
    keychain_here,
    locked_keychain,
    no_keychain,
)
