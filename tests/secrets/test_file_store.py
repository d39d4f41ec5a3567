"""The file store: sealed with a key from the keychain or a passphrase file, else plain and saying so."""

import json
import os
import threading
from pathlib import Path

import pytest

from subluminal.config.places import Places
from subluminal.config.settings import SecretsSettings
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.secrets import protection
from subluminal.secrets.file_store import FileStore

AT = "2026-11-15T12:00:00.000Z"
LATER = "2026-11-16T12:00:00.000Z"
VALUE = 'v"älue-\n\udcff-42'


def passphrase(tmp_path: Path, text: str = "correct horse battery") -> SecretsSettings:
    path = tmp_path / "passphrase"
    path.write_text(text)
    path.chmod(0o600)
    return SecretsSettings(passphrase_file=str(path))


@pytest.mark.usefixtures("no_keychain")
def test_without_a_key_the_store_is_plain_and_says_so(
    here: Places, defaults: SecretsSettings
) -> None:
    store = FileStore(here, defaults)
    assert store.read("a") is None
    assert store.write("a", "value-a", AT) == "plain"
    assert store.read("a") == "value-a"
    assert store.contents().protection == "plain"
    assert os.stat(store.path).st_mode & 0o777 == 0o600


def test_a_passphrase_file_seals_it(here: Places, tmp_path: Path) -> None:
    settings = passphrase(tmp_path)
    store = FileStore(here, settings)
    assert store.write("a", VALUE, AT) == "passphrase"
    assert FileStore(here, settings).read("a") == VALUE
    assert b"lue-" not in Path(store.path).read_bytes()


@pytest.mark.usefixtures("keychain_here")
def test_a_key_in_the_keychain_seals_it(here: Places, defaults: SecretsSettings) -> None:
    store = FileStore(here, defaults)
    assert store.write("a", "value-a", AT) == "keychain"
    assert store.read("a") == "value-a"
    assert b"value-a" not in Path(store.path).read_bytes()


@pytest.mark.usefixtures("no_keychain")
def test_a_plain_store_is_sealed_at_the_next_change(
    here: Places, defaults: SecretsSettings, tmp_path: Path
) -> None:
    FileStore(here, defaults).write("a", "value-a", AT)
    store = FileStore(here, passphrase(tmp_path))
    assert store.write("b", "value-b", AT) == "passphrase"
    assert (store.read("a"), store.read("b")) == ("value-a", "value-b")
    assert b"value-a" not in Path(store.path).read_bytes()


def test_a_wrong_missing_or_exposed_passphrase_is_one_failure(here: Places, tmp_path: Path) -> None:
    settings = passphrase(tmp_path)
    store = FileStore(here, settings)
    store.write("a", "value-a", AT)
    passphrase(tmp_path, "another one")
    with pytest.raises(SecretUnavailable, match="does not open with its key"):
        store.read("a")
    (tmp_path / "passphrase").chmod(0o644)
    with pytest.raises(SecretUnavailable, match="can be read by others"):
        store.read("a")
    (tmp_path / "passphrase").unlink()
    with pytest.raises(SecretUnavailable, match="missing or empty"):
        store.read("a")
    with pytest.raises(SecretUnavailable, match="needs its passphrase file"):
        FileStore(here, SecretsSettings()).read("a")


@pytest.mark.usefixtures("keychain_here")
def test_a_key_that_left_the_keychain_is_one_failure(
    here: Places, defaults: SecretsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(here, defaults)
    store.write("a", "value-a", AT)
    monkeypatch.setattr(protection.keychain, "read", lambda name, wait_ms: None)
    with pytest.raises(SecretUnavailable, match="no longer in the keychain"):
        store.read("a")


def test_a_sealed_value_cannot_be_moved_to_another_name(here: Places, tmp_path: Path) -> None:
    store = FileStore(here, passphrase(tmp_path))
    store.write("a", "value-a", AT)
    store.write("b", "value-b", AT)
    data = json.loads(Path(store.path).read_bytes())
    data["secrets"]["a"]["value"] = data["secrets"]["b"]["value"]
    Path(store.path).write_text(json.dumps(data))
    with pytest.raises(SecretUnavailable, match="does not open"):
        store.read("a")


def test_without_the_library_a_sealed_store_says_what_to_install(
    here: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = passphrase(tmp_path)
    FileStore(here, settings).write("a", "value-a", AT)
    monkeypatch.setitem(
        __import__("sys").modules, "cryptography.hazmat.primitives.ciphers.aead", None
    )
    with pytest.raises(
        SecretUnavailable, match="`cryptography` package is not installed"
    ) as caught:
        FileStore(here, settings).read("a")
    assert caught.value.hint == "install it with `pip install 'subluminal[keychain]'`"


def test_dates_renames_and_deletes(here: Places, tmp_path: Path) -> None:
    store = FileStore(here, passphrase(tmp_path))
    store.write("a", "1", AT)
    store.write("a", "2", LATER)
    store.write("b", "3", AT)
    entry = store.contents().secrets["a"]
    assert (entry.added_at, entry.changed_at) == (AT, LATER)
    with pytest.raises(SubluminalError, match="a secret named `b` already exists"):
        store.rename("a", "b")
    store.rename("a", "c")
    store.delete("b")
    assert set(store.contents().secrets) == {"c"}
    assert store.read("c") == "2"


def test_a_damaged_or_exposed_store_is_one_failure(here: Places, tmp_path: Path) -> None:
    store = FileStore(here, passphrase(tmp_path))
    store.write("a", "value-a", AT)
    Path(store.path).write_bytes(b"{")
    with pytest.raises(SecretUnavailable, match="is damaged"):
        store.read("a")
    os.chmod(store.path, 0o644)
    with pytest.raises(SecretUnavailable, match="can be read by others"):
        store.read("a")


@pytest.mark.usefixtures("no_keychain")
def test_writers_at_the_same_time_lose_nothing(here: Places, defaults: SecretsSettings) -> None:
    def write(index: int) -> None:
        FileStore(here, defaults).write(f"s{index}", f"value-{index}", AT)

    threads = [threading.Thread(target=write, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(FileStore(here, defaults).contents().secrets) == 8
