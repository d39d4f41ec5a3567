"""Writes approval requests: one file for each call and rule that waits for approval.

Reads answers only to see whether a request is still open; `approvals` acts on them.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.clock import rfc3339
from subluminal.contracts.control import ApprovalAsked
from subluminal.contracts.events import CallRef
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.approval_files import MAX_WAITING, OPEN, ApprovalFiles, Request, Slot
from subluminal.core.controls.sealed import SealBroken
from subluminal.core.levels import since
from subluminal.core.records.previews import Previewer
from subluminal.core.runs.run import Run
from subluminal.policy.evaluation import Call
from subluminal.policy.refusing import Refuser

_PENDING_MS = 86_400_000
"""How long a request stays open after the last try of its call."""

_SWEEP_MS = 1_000
"""Shortest time between two searches for settled requests, which other shims have to wait for."""

_NOT_STORED = "no approval was requested, because the request cannot be stored: tell your user"
_TOO_MANY = (
    f"no approval was requested, because {MAX_WAITING} calls of this run already wait for one:"
    " tell your user, and do not try other arguments"
)


class Try(NamedTuple):
    """One call as it is being decided."""

    call: Call
    call_id: str
    args_text: bytes | None
    wall_ms: int
    mono_ms: int


class Asking:
    """Requests approval for calls of one run. Needs the run's lock."""

    def __init__(self, run: Run, previewer: Previewer, files: Callable[[], ApprovalFiles]) -> None:
        self._run = run
        self._previews = previewer
        self._files = files
        """opens the run's approval files when they are first needed"""
        self._full_until_ms = 0

    def ask(self, entry: Refuser, tried: Try) -> Request | str:
        """Writes or renews a request and returns it, or returns why no approval was requested."""
        call, (layer, rule_id) = tried.call, entry.grant_key
        slot = Slot(call.server_name, call.tool_name, call.args_hash, layer, rule_id)
        expires_ms = tried.wall_ms + _PENDING_MS
        try:
            before = self._files().request(slot)
            if before is None and not self._has_room(tried):
                return _TOO_MANY
            if before is not None and self._still_waits(before, slot, tried.wall_ms):
                request = _tried_again(before, expires_ms)
            else:
                request = self._new_request(entry, tried, expires_ms)
                self._files().drop_answer(slot)
            self._files().put_request(slot, request)
        except OSError:
            return _NOT_STORED
        return request

    def _has_room(self, tried: Try) -> bool:
        """Returns True if one more request may wait in the run.

        The limit keeps an agent that tries ever new arguments from flooding the disk and the
        person. Requests that are settled are removed; their answers stay in force.
        """
        names = list(self._files().names())
        if len(names) < MAX_WAITING:
            return True
        if tried.mono_ms < self._full_until_ms:
            return False
        self._full_until_ms = tried.mono_ms + _SWEEP_MS
        standings = [(name, self._files().standing(name, tried.wall_ms)) for name in names]
        settled = [name for name, each in standings if each is None or each.state not in OPEN]
        for name in settled:
            self._files().drop_request(name)
        return len(names) - len(settled) < MAX_WAITING

    def _still_waits(self, request: Request, slot: Slot, wall_ms: int) -> bool:
        if request.run_id != self._run.run_id or request.expires_ms <= wall_ms:
            return False
        if request.incarnation != self._run.state.incarnation:
            return False
        try:
            answer = self._files().answer(slot)
        except (SealBroken, OSError):
            return True
        # A call that comes here although its request was answered has a spent or expired grant.
        return answer is None or answer.given.approval_id != request.approval.approval_id

    def _new_request(self, entry: Refuser, tried: Try, expires_ms: int) -> Request:
        shown, is_cut = self._shown(tried)
        refusal, message = entry.refusal, entry.refusal.summary
        if entry.tests_taint:
            message += f"; {since(self._run.state.taint.state())}"
        assert entry.requirement is not None
        layer, rule_id = entry.grant_key
        return Request(
            run_id=self._run.run_id,
            incarnation=self._run.state.incarnation,
            identity=self._run.identity,
            call=self.ref(tried),
            approval=ApprovalAsked(
                approval_id=os.urandom(6).hex(),
                layer=Layer(layer),
                rule_id=rule_id,
                requirement=entry.requirement,
                reason_code=refusal.reason_code,
                severity=refusal.severity,
                message=self._previews.safe(message),
                requested_at=rfc3339(tried.wall_ms),
                expires_at=rfc3339(expires_ms),
                approver_role=entry.approver_role or UNSET,
                grant_ms=entry.grant_ms or UNSET,
            ),
            args_preview=shown,
            is_cut=is_cut,
            expires_ms=expires_ms,
        )

    def ref(self, tried: Try) -> CallRef:
        """Returns the call as it may be recorded: a secret in the tool's name is masked.

        Such a call cannot get a grant, because the names do not match.
        """
        call = tried.call
        return CallRef(
            call_id=tried.call_id,
            server_name=call.server_name,
            tool_name=self._previews.safe(call.tool_name),
            args_hash=call.args_hash,
        )

    def _shown(self, tried: Try) -> tuple[str | None, bool]:
        args_hash = tried.call.args_hash.encode()
        preview_json, text_json = self._previews.args(tried.args_text, args_hash)
        is_cut = preview_json.startswith(b"true")
        if not text_json:
            return None, is_cut
        member = msgspec.json.decode(b"{" + text_json[1:] + b"}", type=dict[str, str])
        return member["args_preview"], is_cut


def _tried_again(request: Request, expires_ms: int) -> Request:
    approval = msgspec.structs.replace(request.approval, expires_at=rfc3339(expires_ms))
    return msgspec.structs.replace(
        request, approval=approval, expires_ms=expires_ms, asked=request.asked + 1
    )
