"""A person's side of approvals: grants and refusals, made and put on record (D3).

Needs no daemon and no shim: the next try of the call finds what is written here.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from subluminal.clock import now, rfc3339
from subluminal.config.places import Places
from subluminal.contracts.control import ApprovalGiven
from subluminal.contracts.events import ApprovalDecided
from subluminal.contracts.vocabulary import ApprovalAnswer, Layer
from subluminal.core.approval_files import Answer, ApprovalFiles, Request, Slot, approvals_dir
from subluminal.core.operator import identity_in, record_act
from subluminal.core.sealed import SealBroken, seal_key
from subluminal.core.users import local_user
from subluminal.errors import SubluminalError
from subluminal.state.storage import incarnation_of, is_over

DEFAULT_TTL_MS = 3_600_000
MAX_TTL_MS = 7 * 86_400_000
"""A grant ends in any case, and before its run is cleared away."""

_RETRY_HINT = "let the agent repeat the call: it then waits here under a new id"


class Waiting(NamedTuple):
    """An approval as it stands now."""

    request: Request
    slot: Slot
    state: str
    """pending, approved, denied, used or expired"""
    answer: Answer | None
    """what a person said, if it is about this request"""
    used: int
    """how often its grant was used"""
    run_is_over: bool
    """whether nobody is there to try again, unless the run is resumed"""

    @property
    def approval_id(self) -> str:
        return self.request.approval.approval_id


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
    given = ApprovalGiven(
        answer=ApprovalAnswer.APPROVED,
        by=local_user(),
        layer=Layer(slot.layer),
        rule_id=slot.rule_id,
        server_name=slot.server_name,
        tool_name=slot.tool_name,
        args_hash=slot.args_hash or UNSET,
        approval_id=approval_id or UNSET,
        reason=reason or UNSET,
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
    request, slot = waiting.request, waiting.slot
    given = ApprovalGiven(
        answer=ApprovalAnswer.DENIED,
        by=local_user(),
        layer=Layer(slot.layer),
        rule_id=slot.rule_id,
        server_name=slot.server_name,
        tool_name=slot.tool_name,
        args_hash=slot.args_hash or UNSET,
        approval_id=request.approval.approval_id,
        reason=reason or UNSET,
    )
    return _answer(places, request.run_id, slot, given, now().wall_ms, None)


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


def find_waiting(places: Places, approval_id: str) -> Waiting:
    """The approval with this id, or the only one whose id begins so."""
    everything = all_waiting(places)
    for each in everything:
        if each.approval_id == approval_id:
            return each
    found = [each for each in everything if each.approval_id.startswith(approval_id)]
    if len(found) == 1:
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
    request = files.request_named(name)
    if request is None:
        return None
    asked = request.approval
    slot = Slot(
        request.call.server_name,
        request.call.tool_name,
        request.call.args_hash,
        asked.layer,
        asked.rule_id,
    )
    try:
        answer = files.answer_named(name)
    except (SealBroken, OSError):
        answer = None  # a shim that meets it refuses it and says so
    if answer is not None and answer.given.approval_id != asked.approval_id:
        answer = None
    used = 0
    if answer is None:
        state = "pending" if wall_ms < request.expires_ms else "expired"
    elif answer.given.answer is ApprovalAnswer.DENIED:
        state = "denied"
    else:
        grant_id, uses = answer.given.grant_id, answer.given.uses
        used = 0 if grant_id is UNSET else files.used(grant_id)
        if uses is not UNSET and used >= uses:
            state = "used"
        else:
            state = "approved" if wall_ms < (answer.expires_ms or 0) else "expired"
    over = is_over(state_dir, request.run_id)
    return Waiting(request, slot, state, answer, used, over)
