"""Fixtures around keychains, for the tests of the package and of the commands."""

from collections.abc import Iterator

import keyring
import keyring.backends.fail
import pytest
from tests.secrets.secret_service import PrivateSecretService, backend

from subluminal.config.places import Places, places
from subluminal.config.settings import SecretsSettings


@pytest.fixture(scope="session")
def _service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSecretService]:
    service = PrivateSecretService(tmp_path_factory.mktemp("keyring"))
    yield service
    service.stop()


@pytest.fixture
def keychain_here(
    _service: PrivateSecretService, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PrivateSecretService]:
    """A keychain that works: a real Secret Service."""
    yield from _installed(_service, monkeypatch)


@pytest.fixture
def locked_keychain(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PrivateSecretService]:
    """A keychain that is locked, and that nobody can unlock."""
    service = PrivateSecretService(tmp_path_factory.mktemp("locked"))
    try:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", service.address)
        backend().set_password("subluminal", "inside", "v4lue-inside")
        service.lock()
        yield service
    finally:
        service.stop()


@pytest.fixture
def no_keychain() -> Iterator[None]:
    """A machine without any keychain."""
    before = keyring.get_keyring()
    keyring.set_keyring(keyring.backends.fail.Keyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def here() -> Places:
    """The places of the test's own home."""
    import os

    return places(os.environ)


@pytest.fixture
def defaults() -> SecretsSettings:
    return SecretsSettings()


def _installed(
    service: PrivateSecretService, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PrivateSecretService]:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", service.address)
    before = keyring.get_keyring()
    keyring.set_keyring(backend())
    yield service
    keyring.set_keyring(before)
