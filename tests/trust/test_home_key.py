"""The home's key: made once, private, and a signature is good for one purpose only."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from subluminal.trust.home_key import (
    HomeKeyUnusable,
    existing_home_key,
    home_key,
    is_signed,
    key_id_of,
    key_path,
)

MAKE = """
import sys
from subluminal.trust.home_key import home_key
sys.stdin.read(1)
print(home_key(sys.argv[1]).key_id)
"""


def test_the_key_is_made_on_first_use_and_stays(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert existing_home_key(state) is None
    made = home_key(state)
    path = Path(key_path(state))
    assert path == tmp_path / "state" / "keys" / "home.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["home.pem"], "nothing is left of its making"
    assert home_key(state).key_id == made.key_id == key_id_of(made.public)
    again = existing_home_key(state)
    assert again is not None
    assert again.public == made.public
    public = serialization.load_der_public_key(made.public)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert public.curve.name == "secp256r1"


def test_processes_that_race_get_the_same_key(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    racing = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, state],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for each in racing:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.close()
    made = set()
    for each in racing:
        assert each.stdout is not None
        made.add(each.stdout.read())
        each.stdout.close()
        assert each.wait(60) == 0
    assert made == {home_key(state).key_id + "\n"}


def test_a_signature_is_of_one_key_purpose_and_text(tmp_path: Path) -> None:
    one, other = home_key(str(tmp_path / "one")), home_key(str(tmp_path / "other"))
    signature = one.sign("this", b"text")
    assert one.has_signed("this", b"text", signature)
    assert not one.has_signed("that", b"text", signature)
    assert not one.has_signed("this", b"texts", signature)
    assert not one.has_signed("this", b"text", signature[:-1])
    assert not other.has_signed("this", b"text", signature)
    assert not is_signed(b"not a key", "this", b"text", signature)
    rsa_key = rsa.generate_private_key(65537, 2048).public_key()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    public = rsa_key.public_bytes(serialization.Encoding.DER, spki)
    assert not is_signed(public, "this", b"text", signature)


@pytest.mark.parametrize(
    ("spoil", "wanted"),
    [
        (lambda path: path.write_text("rubbish"), "it is not a private key in PEM"),
        (lambda path: path.write_bytes(_pem(ec.SECP384R1())), "it is not a P-256 key"),
        (lambda path: path.chmod(0o644), "other users may read it"),
        (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "not a regular file"),
        (lambda path: (path.unlink(), path.symlink_to("nowhere")), "no such file"),
    ],
    ids=["rubbish", "curve", "mode", "pipe", "link"],
)
def test_a_key_that_cannot_be_used_says_why(tmp_path: Path, spoil, wanted: str) -> None:  # type: ignore[no-untyped-def]
    state = str(tmp_path / "state")
    home_key(state)
    spoil(Path(key_path(state)))
    for ask in (home_key, existing_home_key):
        with pytest.raises(HomeKeyUnusable, match=wanted):
            ask(state)


def test_a_home_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(HomeKeyUnusable, match="cannot be used"):
        home_key(str(tmp_path / "state"))


def _pem(curve: ec.EllipticCurve) -> bytes:
    return ec.generate_private_key(curve).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
