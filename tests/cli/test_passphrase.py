"""A passphrase in front of what only a person may do (local-is-not-trusted)."""

import os
import stat

import pytest

BEHIND = [
    ("approve", "x"),
    ("deny", "x"),
    ("revive", "--all"),
    ("promote", "x", "--session"),
    ("policy", "accept"),
]


@pytest.fixture
def said(sub, monkeypatch):
    """Runs a command that finds the passphrase on a descriptor."""

    def run(passphrase, *words):
        read, write = os.pipe()
        os.write(write, passphrase.encode() + b"\n")
        os.close(write)
        with monkeypatch.context() as patch:
            patch.setenv("SUB_PASSPHRASE_FD", str(read))
            return sub(*words)

    return run


def test_nothing_asks_until_one_is_set(sub, own_home):
    assert sub("passphrase").out == "this home has no passphrase\n"
    assert "passphrase" not in sub("approve", "x").err
    assert sub("passphrase", "remove").code == 2
    assert not (own_home / "state" / "passphrase").exists()


@pytest.mark.parametrize("words", BEHIND, ids=" ".join)
def test_what_a_person_does_asks_for_it(said, sub, own_home, words):
    assert said("correct horse", "passphrase", "set").code == 0
    assert "no terminal" in sub(*words).err
    wrong = said("guess", *words)
    assert (wrong.code, "wrong passphrase" in wrong.err) == (2, True)
    assert "passphrase" not in said("correct horse", *words).err
    assert sub("passphrase", "--json").out == '{"passphrase":true}\n'


def test_stopping_asks_nobody(said, sub):
    said("correct horse", "passphrase", "set")
    assert sub("kill", "--all").code == 0


def test_it_is_not_kept_and_cannot_be_swapped(said, sub, own_home):
    said("correct horse", "passphrase", "set")
    path = own_home / "state" / "passphrase"
    assert b"horse" not in path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(path.read_bytes().replace(b"hash", b"hush"))
    assert "cannot be trusted" in said("correct horse", "approve", "x").err


def test_it_is_removed_by_who_knows_it(said, sub):
    said("correct horse", "passphrase", "set")
    assert said("guess", "passphrase", "remove").code == 2
    assert "two passphrases" in said("correct horse", "passphrase", "set").err
    assert said("correct horse", "passphrase", "remove").code == 0
    assert "passphrase" not in sub("approve", "x").err


def test_what_is_no_passphrase(said, sub, monkeypatch):
    assert "must not be empty" in said(" ", "passphrase", "set").err
    monkeypatch.setenv("SUB_PASSPHRASE_FD", "nonsense")
    assert "not a descriptor" in sub("passphrase", "set").err
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "is for a person" in sub("passphrase", "set").err
