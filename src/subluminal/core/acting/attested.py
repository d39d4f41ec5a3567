"""What a token proves about an agent: verified in a process of its own, kept under the home's seal.

A token itself is kept nowhere: the file is named by a digest, and holds issuer, subject and expiry.
"""

import hashlib
import os
import time

import msgspec
from msgspec import Struct

from subluminal.config.places import Places
from subluminal.contracts.agents import Proof, Registration
from subluminal.contracts.vocabulary import ProofKind
from subluminal.core import helper_process
from subluminal.core.controls.agents import standing
from subluminal.core.controls.sealed import read_sealed, seal_key, write_sealed
from subluminal.core.helper_process import Helper

_PURPOSE = "attestation"
_MODULE = "subluminal.core.acting.verify_helper"
_MAX_BYTES = 65_536
MAX_SECONDS = 30
"""A helper that takes longer is killed; a verification takes half a second."""


_LOOK_S = 0.01
NOT_REGISTERED = "the agent is not registered"


class Attested(Struct, frozen=True, kw_only=True):
    """What a token proves; `proof.problem` says why it proves nothing."""

    proof: Proof
    """the proof: ATTESTED, or NONE with its problem"""
    has_expired: bool = False
    """whether the token proved the agent until its time was over"""
    run_id: str | None = None
    """the only run that the token is valid in; None for any run"""
    issuers: str = ""
    """digest of the issuers that the agent was registered with; a proof by others is void"""
    hint: str | None = None
    """what a person can do about the problem"""

    def holds(self, registration: Registration | None, run_id: str) -> bool:
        """Whether it proves the agent in a run, its expiry aside."""
        is_proof = self.proof.kind is ProofKind.ATTESTED and registration is not None
        return (
            is_proof
            and registration is not None
            and self.issuers == issuers_of(registration)
            and self.run_id in (None, run_id)
        )


_decode = msgspec.json.Decoder(Attested).decode


def issuers_of(registration: Registration) -> str:
    """Returns a digest of everything in a registration that verifies a token."""
    data = msgspec.json.encode([registration.agent_id, registration.issuers])
    return hashlib.sha256(data).hexdigest()


def refused(problem: str) -> Attested:
    """Returns what a token proves that could not be verified."""
    return Attested(proof=Proof(kind=ProofKind.NONE, problem=problem))


class Kept:
    """The proofs that this home has verified and kept, by digest."""

    def __init__(self, places: Places) -> None:
        self._directory = os.path.join(places.cache, "attestations")
        self._state_dir = places.state

    def get(self, token: bytes, registration: Registration) -> Attested | None:
        """Returns what a token was found to prove; None if this home has not verified it."""
        try:
            path, purpose = self._place(token, registration)
            data = read_sealed(path, seal_key(self._state_dir), purpose, _MAX_BYTES)
            return None if data is None else _decode(data)
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, token: bytes, registration: Registration, found: Attested) -> None:
        """Keeps what a token proves, if the disk allows it. A refusal is not kept."""
        if not found.holds(registration, found.run_id or ""):
            return
        try:
            path, purpose = self._place(token, registration)
            data = msgspec.json.encode(found)
            write_sealed(path, seal_key(self._state_dir), purpose, data)
        except OSError:
            return  # with a read-only home, every process verifies

    def _place(self, token: bytes, registration: Registration) -> tuple[str, str]:
        """Returns the file of a token, and the purpose that it is sealed for.

        The purpose names the token: a file that was copied to another token's name proves nothing.
        """
        digest = hashlib.sha256(issuers_of(registration).encode() + b"\0" + token).hexdigest()
        return os.path.join(self._directory, f"{digest}.json"), f"{_PURPOSE} {digest}"


def start_verifying(places: Places, agent_id: str, token: bytes) -> Helper:
    """Starts a process that verifies a token. Raises OSError."""
    return helper_process.start(_MODULE, [places.state, agent_id], token, most_s=MAX_SECONDS)


def collect_verified(running: Helper) -> Attested | None:
    """Returns the process' answer when it is done, else None."""
    answer = helper_process.collect(running)
    if answer is None:
        return None
    if answer.code is None:
        return refused(f"verifying it took longer than {MAX_SECONDS} s")
    try:
        return _decode(answer.data)
    except msgspec.MsgspecError:
        return refused("the process that verifies tokens crashed")


def verify_now(places: Places, agent_id: str, token: bytes) -> Attested:
    """Verifies a token and waits for the answer; for commands, not for calls. Raises OSError."""
    registration, kept = standing(places.state, agent_id).registration, Kept(places)
    if registration is None:
        return refused(NOT_REGISTERED)
    found = kept.get(token, registration)
    if found is None:
        helper = start_verifying(places, agent_id, token)
        while (found := collect_verified(helper)) is None:
            time.sleep(_LOOK_S)
        kept.put(token, registration, found)
    return found
