"""Approvals on disk: sealed files with requests and their answers (no-call-waits).

    $SUB_HOME/state/approvals/RUN/SLOT.request      written by shims: a call waiting for approval
                                  SLOT.answer       written by a person's command: a grant or a no
                                  spent/GRANT.USE   an empty file for each use of a grant

A slot's name is a hash of the call and the rule, so a shim finds the answer to a call without a
list. Shims and people write different files, so neither can undo what the other writes at the same
time.
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
from subluminal.core.gates import approvals_folder

MAX_WAITING = 100
"""Most approvals that may wait in one run at a time: more than a person answers one by one."""

OPEN = ("pending", "approved")
"""The states in which a person may still answer, or change the answer."""

REQUEST, ANSWER = ".request", ".answer"
_REQUEST_PURPOSE = "approval-request"
_ANSWER_PURPOSE = "approval-answer"


class Slot(NamedTuple):
    """What an approval is about: one rule, and one call or every call of a tool."""

    server_name: str
    tool_name: str
    args_hash: str | None
    """hash of the arguments of one call; None for every call of the tool"""
    layer: str
    rule_id: str

    @property
    def name(self) -> str:
        """The file name without its suffix, the same in every process."""
        words = [self.server_name, self.tool_name, self.args_hash or "", self.layer, self.rule_id]
        # Lengths come first, so that no two lists of words give the same text.
        text = "".join(f"{len(word)}:{word}" for word in words)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Request(Struct, frozen=True, kw_only=True):
    """A call waiting for approval, with what a person needs to judge it."""

    run_id: str
    incarnation: int
    """incarnation of the run's state at the time of the request"""
    identity: Identity
    call: CallRef
    """the first try of the call; a retry has another call_id"""
    approval: ApprovalAsked
    args_preview: str | None
    """redacted arguments; None if arguments are not recorded"""
    is_cut: bool
    """whether the preview is shorter than the arguments"""
    expires_ms: int
    """expiry by the wall clock, in ms"""
    asked: int = 1
    """number of times the call was tried"""

    @property
    def slot(self) -> Slot:
        """The slot of the request."""
        call, asked = self.call, self.approval
        return Slot(call.server_name, call.tool_name, call.args_hash, asked.layer, asked.rule_id)


class Answer(Struct, frozen=True, kw_only=True):
    """A person's answer to a request. It is a grant if `given` has a grant_id."""

    run_id: str
    incarnation: int
    given: ApprovalGiven
    issued_ms: int
    expires_ms: int | None
    """expiry of a grant by the wall clock, in ms; None for a no, which holds until the run ends"""


_Kept = TypeVar("_Kept", Request, Answer)


class Standing(NamedTuple):
    """The state of an approval at one moment."""

    request: Request
    state: str
    """pending, approved, denied, used or expired"""
    answer: Answer | None
    """the answer to this request, if there is one"""
    used: int
    """number of uses of its grant"""


def slot_of(given: ApprovalGiven) -> Slot:
    """Returns the slot that an answer is for."""
    args_hash = None if given.args_hash is UNSET else given.args_hash
    return Slot(given.server_name, given.tool_name, args_hash, given.layer, given.rule_id)


class ApprovalFiles:
    """The approval files of one run."""

    def __init__(self, directory: str, key: bytes) -> None:
        self.directory = directory
        self._key = key

    @classmethod
    def of_run(cls, state_dir: str, run_id: str, key: bytes) -> "ApprovalFiles":
        """Returns the files of the run with this id."""
        return cls(approvals_folder(state_dir, run_id), key)

    def request(self, slot: Slot) -> Request | None:
        """Returns the request in a slot; None if there is none that this home has sealed."""
        return self.request_named(slot.name)

    def request_named(self, name: str) -> Request | None:
        data = read_sealed(self._path(name, REQUEST), self._key, _REQUEST_PURPOSE)
        return None if data is None else _decoded(data, Request)

    def answer(self, slot: Slot) -> Answer | None:
        """Returns the answer in a slot, or None. Raises SealBroken or OSError."""
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
        """Returns the state of an approval; None if no request is there that this home sealed."""
        request = self.request_named(name)
        if request is None:
            return None
        try:
            answer = self.answer_named(name)
        except (SealBroken, OSError):
            answer = None  # the shim that finds this file records a grant_refused
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
        """Yields the names of the slots that have a request."""
        try:
            found = sorted(os.listdir(self.directory))
        except OSError:
            return
        for file in found:
            name, suffix = os.path.splitext(file)
            if suffix == REQUEST:
                yield name

    def put_request(self, slot: Slot, request: Request) -> None:
        """Writes a request, or replaces it."""
        data = msgspec.json.encode(request)
        write_sealed(self._path(slot.name, REQUEST), self._key, _REQUEST_PURPOSE, data)

    def drop_request(self, name: str) -> None:
        """Removes a request. Its answer stays in force."""
        os.unlink(self._path(name, REQUEST))

    def put_answer(self, slot: Slot, answer: Answer) -> None:
        """Writes an answer, or replaces the one before."""
        data = msgspec.json.encode(answer)
        write_sealed(self._path(slot.name, ANSWER), self._key, _ANSWER_PURPOSE, data)

    def drop_answer(self, slot: Slot) -> None:
        """Removes an answer that is no longer in force."""
        try:
            os.unlink(self._path(slot.name, ANSWER))
        except OSError:
            return

    def claim_use(self, grant_id: str, first: int, last: int) -> int | None:
        """Marks one use permanently and returns its number; None if all numbers are taken.

        Tries the numbers from `first` to `last`. A number may be taken although the run's counter
        does not include it: an older copy of the state was put back, or a process died between
        the mark and the counter.
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
        """Returns the number of uses that are marked."""
        prefix = f"{encode_name(grant_id)}."
        try:
            names = os.listdir(os.path.join(self.directory, "spent"))
        except OSError:
            return 0
        return sum(name.startswith(prefix) for name in names)

    def _path(self, name: str, suffix: str) -> str:
        return os.path.join(self.directory, name + suffix)


def approvals_dir(state_dir: str) -> str:
    """Returns the directory of the approvals of all runs."""
    return os.path.join(state_dir, "approvals")


def _decoded(data: bytes, kind: type[_Kept]) -> _Kept | None:
    """Decodes a file's data; None if another version of Subluminal wrote it."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:
        return None
