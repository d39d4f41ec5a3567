"""Anchors: signed heads of the ledger that are kept outside of the home (provable-ledger).

An anchor is one line of JSON that states the newest checkpoint, signed with the home's key. Whoever
kept it can show later that the ledger was rewound, rewritten or made anew, even if somebody used
the key: the line is out of reach. Anchors that were seen elsewhere can be recorded in the home.
"""

import base64
import os

import msgspec
from msgspec import Struct

from subluminal.clock import rfc3339
from subluminal.config.places import Places
from subluminal.errors import SubluminalError
from subluminal.ledger.upkeep.checkpoints import Checkpoint
from subluminal.ledger.upkeep.state_files import read_state_file
from subluminal.trust.home_key import HomeKey, is_signed, key_id_of

FORMAT = 1
PURPOSE = "subluminal-ledger-anchor-v1"
MAX_BYTES = 67_108_864
"""Most bytes of a file that are searched for anchors; a CI log is smaller."""


class Anchor(Struct, frozen=True, kw_only=True):
    """A line that `sub ledger anchor` prints."""

    anchor: int = FORMAT
    """version of the format"""
    home: str
    """id of the home's key: SHA-256 of the public key, in hex"""
    checkpoint: int
    """number of the checkpoint"""
    digest: str
    """hash over the checkpoint, which contains that of the one before it, in hex"""
    events: int
    """number of events in the ledger then"""
    created_at: str
    """time of the checkpoint, RFC 3339"""
    public_key: str
    """the home's public key: SubjectPublicKeyInfo, DER, base64"""
    signature: str = ""
    """ECDSA P-256 with SHA-256 over the line without it, DER, base64"""

    def is_genuine(self) -> bool:
        """Whether the owner of its public key signed it, and `home` is the id of that key."""
        try:
            public = base64.b64decode(self.public_key, validate=True)
            signature = base64.b64decode(self.signature, validate=True)
        except ValueError:
            return False
        return key_id_of(public) == self.home and is_signed(
            public, PURPOSE, _statement(self), signature
        )


def make_anchor(made: Checkpoint, key: HomeKey) -> Anchor:
    """Signs the anchor of a checkpoint."""
    bare = Anchor(
        home=key.key_id,
        checkpoint=made.id,
        digest=made.digest.hex(),
        events=made.pos,
        created_at=rfc3339(made.created_at),
        public_key=base64.b64encode(key.public).decode(),
    )
    signature = base64.b64encode(key.sign(PURPOSE, _statement(bare))).decode()
    return msgspec.structs.replace(bare, signature=signature)


def _statement(anchor: Anchor) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(anchor, signature=""))


_decode = msgspec.json.Decoder(Anchor).decode


def find_anchors(text: bytes, name: str) -> list[Anchor]:
    """The anchors in a text, such as a CI log: every line that is one, whatever stands before it.

    Raises SubluminalError if there is none.
    """
    found = []
    for line in text.split(b"\n"):
        at = line.find(b'{"anchor":')
        if at >= 0:
            try:
                found.append(_decode(line[at:].rstrip()))
            except (msgspec.MsgspecError, ValueError):
                raise SubluminalError(
                    f"`{name}` has a line that looks like an anchor and is not one",
                    hint="give the line as `sub ledger anchor` printed it",
                ) from None
    if not found:
        raise SubluminalError(
            f"there is no anchor in `{name}`", hint="`sub ledger anchor` prints one"
        )
    newer = [each for each in found if each.anchor != FORMAT]
    if newer:
        raise SubluminalError(
            f"an anchor in `{name}` has format {newer[0].anchor}; this `sub` knows format {FORMAT}",
            hint="upgrade subluminal",
        )
    return found


def anchors_path(places: Places) -> str:
    """The file of the anchors that were recorded in this home."""
    return os.path.join(places.state, "ledger.anchors")


def recorded_anchors(places: Places) -> list[Anchor]:
    """The anchors that were recorded in this home."""
    path = anchors_path(places)
    text = read_state_file(path, MAX_BYTES)
    return find_anchors(text, path) if text and text.strip() else []


def record_anchors(places: Places, anchors: list[Anchor]) -> int:
    """Records anchors that are not recorded yet; returns how many."""
    known = recorded_anchors(places)
    new = [each for each in anchors if each not in known]
    if new:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(anchors_path(places), flags, 0o600)
        try:
            os.write(handle, b"".join(msgspec.json.encode(each) + b"\n" for each in new))
            os.fsync(handle)
        finally:
            os.close(handle)
    return len(new)
