"""The keychain source, against a real Secret Service."""

import subprocess
import sys

import pytest
from tests.secrets.secret_service import PrivateSecretService

from subluminal.errors import SecretUnavailable
from subluminal.secrets import keychain

WAIT = 15_000


def test_a_value_is_stored_read_and_deleted(keychain_here: PrivateSecretService) -> None:
    assert keychain.read("github_token", WAIT) is None
    keychain.write("github_token", 'v"älue\n2', WAIT)
    assert keychain.read("github_token", WAIT) == 'v"älue\n2'
    keychain.write("github_token", "second", WAIT)
    assert keychain.read("github_token", WAIT) == "second"
    keychain.delete("github_token", WAIT)
    assert keychain.read("github_token", WAIT) is None


def test_what_we_store_another_tool_finds(keychain_here: PrivateSecretService) -> None:
    keychain.write("seen_by_others", "s3cret-by-tool", WAIT)
    found = subprocess.run(
        ["secret-tool", "lookup", "service", "subluminal", "username", "seen_by_others"],
        env=keychain_here.environ,
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert found.stdout == b"s3cret-by-tool"


def test_the_backend_is_named(keychain_here: PrivateSecretService) -> None:
    assert "SecretService" in keychain.backend(WAIT)


READ = """
from subluminal.errors import SecretUnavailable
from subluminal.secrets import keychain
try:
    print(keychain.read("inside", 5_000))
except SecretUnavailable as error:
    print(f"refused: {error}")
"""


def test_a_locked_keychain_fails_in_bounded_time(locked_keychain: PrivateSecretService) -> None:
    # In a process of its own: the library leaves its connection open when it cannot unlock.
    ran = subprocess.run(
        [sys.executable, "-c", READ],
        env=locked_keychain.environ,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("refused: the keychain ")
    assert "locked" in ran.stdout


@pytest.mark.usefixtures("no_keychain")
def test_a_missing_keychain_has_a_clear_error() -> None:
    for use in (lambda: keychain.read("x", WAIT), lambda: keychain.backend(WAIT)):
        with pytest.raises(SecretUnavailable, match="there is no keychain here"):
            use()
