"""A person's side of approvals: grants and refusals, made and put on record (no-call-waits).

Needs no daemon and no shim: the next try of the call finds what is written here.
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
from subluminal.contracts.vocabulary import ApprovalAnswer, Layer
from subluminal.core.controls.approval_files import (
    MAX_WAITING,
    OPEN,
    Answer,
    ApprovalFiles,
    Request,
    Slot,
    approvals_dir,
)
from subluminal.core.controls.operator_record import identity_in, record_act
from subluminal.core.controls.sealed import seal_key
from subluminal.errors import SubluminalError
from subluminal.state.storage import incarnation_of, is_over
from subluminal.trust.identity.users import local_user

DEFAULT_TTL_MS = 3_600_000
MAX_TTL_MS = 7 * 86_400_000
"""A grant ends in any case, and before its run is cleared away."""

MAX_USES = 1_000
"""Each use leaves a mark on disk."""

_RETRY_HINT = "let the agent repeat the call: it then waits here under a new id"


class Waiting(NamedTuple):
    """An approval as it stands now (approval_files.Standing), and its run."""

    request: Request
    state: str
    answer: Answer | None
    used: int
    run_is_over: bool
    """whether nobody is there to try again, unless the run is resumed"""

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
    ticket: str | None = None,
    approval_id: str | None = None,
) -> Answer:
    """Lets calls pass one rule of a run, from their next try on, and puts that on record.

    With `slot.args_hash` the grant is for that very call; without, for every call of the tool, and
    then the rule need not be one that asks. `uses` may be None only there.

    Raises:
        SubluminalError: there is no state of such a run to bind the grant to.
    """
    at_ms = now().wall_ms
    expires_ms = at_ms + min(ttl_ms, MAX_TTL_MS)
    given = _given(
        ApprovalAnswer.APPROVED,
        slot,
        reason=reason,
        approval_id=approval_id or UNSET,
        ticket=ticket or UNSET,
        grant_id=f"grant-{os.urandom(8).hex()}",
        uses=UNSET if uses is None and slot.args_hash is None else uses or 1,
        expires_at=rfc3339(expires_ms),
    )
    return _answer(places, run_id, slot, given, at_ms, expires_ms)


def deny(places: Places, waiting: Waiting, *, reason: str | None = None) -> Answer:
    """Turns the call's next tries into a BLOCK with this reason, for as long as the run lasts.

    A grant that was given before is thereby taken back.
    """
    given = _given(
        ApprovalAnswer.DENIED, waiting.slot, reason=reason, approval_id=waiting.approval_id
    )
    return _answer(places, waiting.request.run_id, waiting.slot, given, now().wall_ms, None)


def _given(answer: ApprovalAnswer, slot: Slot, *, reason: str | None, **more: Any) -> ApprovalGiven:
    """What the person at this machine says of a slot."""
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
    """Every approval that is still on disk, the oldest first."""
    found = [
        _look(files, name, wall_ms, places.state)
        for wall_ms in [now().wall_ms]
        for files in _all_files(places)
        for name in files.names()
    ]
    known = [each for each in found if each is not None]
    return sorted(known, key=lambda each: each.request.approval.requested_at)


def full_runs(everything: list[Waiting]) -> list[str]:
    """The runs in which so much waits that they ask for no more."""
    found = Counter(each.request.run_id for each in everything if each.state in OPEN)
    return [run_id for run_id, number in found.items() if number >= MAX_WAITING]


def find_waiting(places: Places, approval_id: str) -> Waiting:
    """The approval with this id, or the only one whose id begins so."""
    everything = all_waiting(places)
    for each in everything:
        if each.approval_id == approval_id:
            return each
    found = [each for each in everything if each.approval_id.startswith(approval_id)]
    # An empty word, as of a variable that is not set, means nothing.
    if len(found) == 1 and approval_id:
        return found[0]
    if found:
        ids = ", ".join(f"`{each.approval_id}`" for each in found[:5])
        raise SubluminalError(f"`{approval_id}` may be any of {ids}", hint="give more of the id")
    raise SubluminalError(
        f"there is no approval `{approval_id}`",
        hint="`sub approvals --all` lists them; one that was asked anew has a new id",
    )


def check_open(places: Places, waiting: Waiting) -> None:
    """Raises if a grant would be for nothing: it came too late, or its run's state is gone."""
    if waiting.state == "expired":
        raise SubluminalError(f"approval `{waiting.approval_id}` has expired", hint=_RETRY_HINT)
    if waiting.state == "used":
        raise SubluminalError(
            f"the grant for `{waiting.approval_id}` was used already", hint=_RETRY_HINT
        )
    if incarnation_of(places.state, waiting.request.run_id) != waiting.request.incarnation:
        raise SubluminalError(
            f"the state of run `{waiting.request.run_id}` was removed since it asked",
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
    # On record first: no call may pass by an answer that nobody can find.
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
