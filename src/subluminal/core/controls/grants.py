"""A person's side of approvals: lists requests, and writes and records answers (no-call-waits).

Needs no daemon and no running shim: the next try of the call finds the answer on disk.
"""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places
from subluminal.contracts.control import ApprovalGiven
from subluminal.contracts.events import ApprovalDecided
from subluminal.contracts.vocabulary import ApprovalAnswer, Layer, Requirement
from subluminal.core.controls.acts import identity_in, record_act
from subluminal.core.controls.approval_files import (
    MAX_WAITING,
    OPEN,
    Answer,
    ApprovalFiles,
    Request,
    Slot,
    approvals_dir,
)
from subluminal.core.controls.sealed import seal_key
from subluminal.errors import SubluminalError
from subluminal.state.storage import incarnation_of, is_over
from subluminal.trust.identity.machine import local_user

DEFAULT_TTL_MS = 3_600_000
MAX_TTL_MS = 7 * 86_400_000
"""Longest life of a grant. It is shorter than the time for which a run's state is kept."""

MAX_USES = 1_000
"""Most uses of a grant: each use leaves a file on disk."""

_RETRY_HINT = "let the agent repeat the call; it then asks again under a new id"


class Waiting(NamedTuple):
    """The state of an approval (see approval_files.Standing), and whether its run is over."""

    request: Request
    state: str
    answer: Answer | None
    used: int
    run_is_over: bool
    """whether no process is left that could try the call again"""

    @property
    def approval_id(self) -> str:
        return self.request.approval.approval_id

    @property
    def slot(self) -> Slot:
        return self.request.slot


def issue_grant(
    places: Places,
    run_id: str,
    slot: Slot,
    *,
    uses: int | None = 1,
    ttl_ms: int = DEFAULT_TTL_MS,
    reason: str | None = None,
    requirement: Requirement | None = None,
    ticket: str | None = None,
    approval_id: str | None = None,
) -> Answer:
    """Writes and records a grant: calls pass one rule of a run from their next try on.

    With `slot.args_hash` the grant is for that one call. Without it the grant is for every call of
    the tool, the rule need not be one that asks for approval, and `uses` may be None (no limit).
    `requirement` is what the person met. Without it the grant does not pass a rule that requires a
    ticket, a step-up or a human.

    Raises:
        SubluminalError: the run has no state, to which a grant is bound.
    """
    at_ms = now().wall_ms
    expires_ms = at_ms + min(ttl_ms, MAX_TTL_MS)
    given = _given(
        ApprovalAnswer.APPROVED,
        slot,
        reason=reason,
        approval_id=approval_id or UNSET,
        requirement=requirement or UNSET,
        ticket=ticket or UNSET,
        grant_id=f"grant-{os.urandom(8).hex()}",
        uses=UNSET if uses is None and slot.args_hash is None else uses or 1,
        expires_at=rfc3339(expires_ms),
    )
    return _answer(places, run_id, slot, given, at_ms, expires_ms)


def deny(places: Places, waiting: Waiting, *, reason: str | None = None) -> Answer:
    """Writes and records a no: further tries of the call get a BLOCK with this reason.

    It holds until the run ends, and replaces a grant that was given before.
    """
    given = _given(
        ApprovalAnswer.DENIED, waiting.slot, reason=reason, approval_id=waiting.approval_id
    )
    return _answer(places, waiting.request.run_id, waiting.slot, given, now().wall_ms, None)


def _given(answer: ApprovalAnswer, slot: Slot, *, reason: str | None, **more: Any) -> ApprovalGiven:
    """Returns the answer of this machine's user about a slot."""
    return ApprovalGiven(
        answer=answer,
        by=local_user(),
        layer=Layer(slot.layer),
        rule_id=slot.rule_id,
        server_name=slot.server_name,
        tool_name=slot.tool_name,
        args_hash=slot.args_hash or UNSET,
        reason=reason or UNSET,
        **more,
    )


def all_waiting(places: Places) -> list[Waiting]:
    """Returns every approval that is still on disk, the oldest first."""
    found = [
        _look(files, name, wall_ms, places.state)
        for wall_ms in [now().wall_ms]
        for files in _all_files(places)
        for name in files.names()
    ]
    known = [each for each in found if each is not None]
    return sorted(known, key=lambda each: each.request.approval.requested_at)


def full_runs(everything: list[Waiting]) -> list[str]:
    """Returns the runs in which so many approvals wait that no more are requested."""
    found = Counter(each.request.run_id for each in everything if each.state in OPEN)
    return [run_id for run_id, number in found.items() if number >= MAX_WAITING]


def find_waiting(places: Places, approval_id: str) -> Waiting:
    """Returns the approval with this id, or the only one whose id begins so."""
    everything = all_waiting(places)
    for each in everything:
        if each.approval_id == approval_id:
            return each
    found = [each for each in everything if each.approval_id.startswith(approval_id)]
    # An empty id comes from a shell variable that is not set, and matches nothing.
    if len(found) == 1 and approval_id:
        return found[0]
    if found:
        ids = ", ".join(f"`{each.approval_id}`" for each in found[:5])
        raise SubluminalError(
            f"`{approval_id}` matches more than one approval: {ids}", hint="give more of the id"
        )
    raise SubluminalError(
        f"there is no approval `{approval_id}`",
        hint="`sub approvals --all` lists them; a call that asked again has a new id",
    )


def check_open(places: Places, waiting: Waiting) -> None:
    """Raises SubluminalError if a grant would have no effect: too late, or the state is gone."""
    if waiting.state == "expired":
        raise SubluminalError(f"approval `{waiting.approval_id}` has expired", hint=_RETRY_HINT)
    if waiting.state == "used":
        raise SubluminalError(
            f"the grant for approval `{waiting.approval_id}` was already used", hint=_RETRY_HINT
        )
    if incarnation_of(places.state, waiting.request.run_id) != waiting.request.incarnation:
        raise SubluminalError(
            f"the state of run `{waiting.request.run_id}` was removed after it asked for approval",
            hint=_RETRY_HINT,
        )


def _answer(
    places: Places,
    run_id: str,
    slot: Slot,
    given: ApprovalGiven,
    at_ms: int,
    expires_ms: int | None,
) -> Answer:
    incarnation = incarnation_of(places.state, run_id)
    if incarnation is None:
        raise SubluminalError(
            f"there is no run `{run_id}` here", hint="`sub query runs` lists the runs"
        )
    answer = Answer(
        run_id=run_id,
        incarnation=incarnation,
        given=given,
        issued_ms=at_ms,
        expires_ms=expires_ms,
    )
    files = ApprovalFiles.of_run(places.state, run_id, seal_key(places.state))
    # INVARIANT: the record comes first. No call may pass because of an answer that is not recorded.
    identity = identity_in(places, run_id)
    if not record_act(places, run_id, identity, ApprovalDecided, approval=given):
        raise SubluminalError(
            "the answer cannot be recorded, so nothing was changed",
            hint=f"check that `{places.journal}` is writable and that its disk has room",
        )
    files.put_answer(slot, answer)
    return answer


def _all_files(places: Places) -> Iterator[ApprovalFiles]:
    try:
        names = sorted(os.listdir(approvals_dir(places.state)))
    except OSError:
        return
    key = seal_key(places.state)
    for name in names:
        yield ApprovalFiles(os.path.join(approvals_dir(places.state), name), key)


def _look(files: ApprovalFiles, name: str, wall_ms: int, state_dir: str) -> Waiting | None:
    standing = files.standing(name, wall_ms)
    if standing is None:
        return None
    over = is_over(state_dir, standing.request.run_id)
    return Waiting(*standing, over)
