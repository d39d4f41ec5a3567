"""Pending approvals and their answers on disk, under this home's seal (no-call-waits,
local-is-not-trusted).

    $SUB_HOME/state/approvals/RUN/SLOT.request      written by shims: what waits for a person
                                  SLOT.answer       written by a person's command: a grant, or no
                                  spent/GRANT.USE   one for each use, made once and never again

A slot is named by the call and the rule it waits for, so that who looks needs no list. The two
sides write different files: neither can undo what the other wrote meanwhile.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct

from subluminal.config.places import encode_name, make_private_dir
from subluminal.contracts.control import ApprovalAsked, ApprovalGiven
from subluminal.contracts.events import CallRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import ApprovalAnswer
from subluminal.core.controls.sealed import SealBroken, read_sealed, unseal, write_sealed

MAX_WAITING = 100
"""Approvals that may wait in one run at a time: more than anyone answers one by one."""

OPEN = ("pending", "approved")
"""States in which a person may still answer, or take an answer back."""

REQUEST, ANSWER = ".request", ".answer"
_REQUEST_PURPOSE = "approval-request"
_ANSWER_PURPOSE = "approval-answer"


class Slot(NamedTuple):
    """What an approval is for: one rule and one call, or every call of a tool that meets it."""

    server_name: str
    tool_name: str
    args_hash: str | None
    """None: whatever the arguments"""
    layer: str
    rule_id: str

    @property
    def name(self) -> str:
        """A file's name, the same in every process."""
        words = [self.server_name, self.tool_name, self.args_hash or "", self.layer, self.rule_id]
        # Lengths in front, so that no two lists of words give the same text.
        text = "".join(f"{len(word)}:{word}" for word in words)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Request(Struct, frozen=True, kw_only=True):
    """What waits for a person, with all that they need to judge."""

    run_id: str
    incarnation: int
    """of the run's state when it was asked"""
    identity: Identity
    call: CallRef
    """the first call that asked; a retry has another call_id"""
    approval: ApprovalAsked
    args_preview: str | None
    """redacted; None where nothing is recorded of arguments"""
    is_cut: bool
    """whether the arguments are longer than what is shown"""
    expires_ms: int
    """by the wall clock"""
    asked: int = 1
    """how often the call was tried"""

    @property
    def slot(self) -> Slot:
        """Where it waits."""
        call, asked = self.call, self.approval
        return Slot(call.server_name, call.tool_name, call.args_hash, asked.layer, asked.rule_id)


class Answer(Struct, frozen=True, kw_only=True):
    """What a person said. A grant, if `given` has a grant_id."""

    run_id: str
    incarnation: int
    given: ApprovalGiven
    issued_ms: int
    expires_ms: int | None
    """None for a no, which holds as long as the run"""


_Kept = TypeVar("_Kept", Request, Answer)


class Standing(NamedTuple):
    """An approval as it stands at one moment."""

    request: Request
    state: str
    """pending, approved, denied, used or expired"""
    answer: Answer | None
    """what a person said, if it is about this request"""
    used: int
    """how often its grant was used"""


def slot_of(given: ApprovalGiven) -> Slot:
    """Where an answer belongs."""
    args_hash = None if given.args_hash is UNSET else given.args_hash
    return Slot(given.server_name, given.tool_name, args_hash, given.layer, given.rule_id)


class ApprovalFiles:
    """The files of one run."""

    def __init__(self, directory: str, key: bytes) -> None:
        self.directory = directory
        self._key = key

    @classmethod
    def of_run(cls, state_dir: str, run_id: str, key: bytes) -> "ApprovalFiles":
        """The files of a run by its name."""
        return cls(os.path.join(approvals_dir(state_dir), encode_name(run_id)), key)

    def request(self, slot: Slot) -> Request | None:
        """What waits there; None if nothing does, or nobody of this home wrote it."""
        return self.request_named(slot.name)

    def request_named(self, name: str) -> Request | None:
        data = read_sealed(self._path(name, REQUEST), self._key, _REQUEST_PURPOSE)
        return None if data is None else _decoded(data, Request)

    def answer(self, slot: Slot) -> Answer | None:
        """What was said to it; None if nothing was. Raises SealBroken or OSError."""
        return self.answer_named(slot.name)

    def answer_named(self, name: str) -> Answer | None:
        try:
            data = unseal(self._path(name, ANSWER), self._key, _ANSWER_PURPOSE)
        except FileNotFoundError:
            return None
        answer = _decoded(data, Answer)
        if answer is None:
            raise SealBroken
        return answer

    def standing(self, name: str, wall_ms: int) -> Standing | None:
        """How an approval stands; None if nothing waits there that this home wrote."""
        request = self.request_named(name)
        if request is None:
            return None
        try:
            answer = self.answer_named(name)
        except (SealBroken, OSError):
            answer = None  # a shim that meets it refuses it and says so
        if answer is None or answer.given.approval_id != request.approval.approval_id:
            state = "pending" if wall_ms < request.expires_ms else "expired"
            return Standing(request, state, None, 0)
        given = answer.given
        if given.answer is ApprovalAnswer.DENIED:
            return Standing(request, "denied", answer, 0)
        used = 0 if given.grant_id is UNSET else self.used(given.grant_id)
        if given.uses is not UNSET and used >= given.uses:
            return Standing(request, "used", answer, used)
        state = "approved" if wall_ms < (answer.expires_ms or 0) else "expired"
        return Standing(request, state, answer, used)

    def names(self) -> Iterator[str]:
        """The slots in which something waits, or waited."""
        try:
            found = sorted(os.listdir(self.directory))
        except OSError:
            return
        for file in found:
            name, suffix = os.path.splitext(file)
            if suffix == REQUEST:
                yield name

    def put_request(self, slot: Slot, request: Request) -> None:
        """Writes or refreshes what waits."""
        data = msgspec.json.encode(request)
        write_sealed(self._path(slot.name, REQUEST), self._key, _REQUEST_PURPOSE, data)

    def drop_request(self, name: str) -> None:
        """Lets go of what waits no more. An answer to it goes on to hold."""
        os.unlink(self._path(name, REQUEST))

    def put_answer(self, slot: Slot, answer: Answer) -> None:
        """Writes what a person said, in place of what they said before."""
        data = msgspec.json.encode(answer)
        write_sealed(self._path(slot.name, ANSWER), self._key, _ANSWER_PURPOSE, data)

    def drop_answer(self, slot: Slot) -> None:
        """Removes an answer that holds no longer."""
        try:
            os.unlink(self._path(slot.name, ANSWER))
        except OSError:
            return

    def claim_use(self, grant_id: str, first: int, last: int) -> int | None:
        """Marks one use for ever and returns its number, from 1; None if `last` is taken too.

        A number that is taken although the run's counter does not know of it was used before
        someone put back an older state, or by a process that died right then.
        """
        directory = make_private_dir(os.path.join(self.directory, "spent"))
        for number in range(first, last + 1):
            path = os.path.join(directory, f"{encode_name(grant_id)}.{number}")
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                continue
            return number
        return None

    def used(self, grant_id: str) -> int:
        """How many uses are marked."""
        prefix = f"{encode_name(grant_id)}."
        try:
            names = os.listdir(os.path.join(self.directory, "spent"))
        except OSError:
            return 0
        return sum(name.startswith(prefix) for name in names)

    def _path(self, name: str, suffix: str) -> str:
        return os.path.join(self.directory, name + suffix)


def approvals_dir(state_dir: str) -> str:
    """Where the approvals of all runs are."""
    return os.path.join(state_dir, "approvals")


def _decoded(data: bytes, kind: type[_Kept]) -> _Kept | None:
    """None for what another version of ours wrote."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:
        return None
