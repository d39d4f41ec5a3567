"""Which tickets `sub approve` accepts: by their form, and by a command that the settings name."""

import os

from subluminal.config.places import Places
from subluminal.config.settings import ApprovalSettings
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.trials import Trial, run_for_a_moment
from subluminal.policy.patterns import regex_problem
from subluminal.visible import shown

_MAX_LINE_CHARS = 500


def check_form(ticket: str, settings: ApprovalSettings) -> None:
    """Raises SubluminalError if the ticket does not look like one."""
    # The check command must not take a ticket for an option.
    if not ticket.strip() or ticket.startswith("-") or shown(ticket) != ticket:
        raise UsageError(
            f"`{ticket}` is not a ticket",
            hint="write it as your ticket system does, such as OPS-17",
        )
    pattern = settings.ticket_pattern
    if pattern is None:
        return
    problem = regex_problem(pattern)
    if problem is not None:
        raise SubluminalError(
            f"`ticket_pattern` in the settings is not usable: {problem}",
            hint="patterns use RE2's syntax, without lookaround and backreferences",
        )
    import re2

    if re2.fullmatch(pattern, ticket) is None:
        raise UsageError(
            f"ticket `{ticket}` does not match `{pattern}`",
            hint="`ticket_pattern` under `[approvals]` in the settings says how tickets look",
        )


def ask_about(ticket: str, settings: ApprovalSettings, places: Places) -> None:
    """Asks the check command about a ticket. Raises SubluminalError unless it accepts the ticket.

    The command starts in SUB_HOME, so that no file of the current directory can take its place.
    """
    command = settings.ticket_check
    if not command:
        return
    timeout_s = settings.ticket_check_ms / 1000
    try:
        done = run_for_a_moment(
            [*command, ticket],
            b"",
            timeout_s,
            environ=os.environ,
            cwd=places.home,
            with_stderr=True,
        )
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise SubluminalError(
            f"`{command[0]}` cannot be started to check the ticket: {reason}",
            hint="mend `ticket_check` under `[approvals]` in the settings",
        ) from None
    if done.code is None:
        raise SubluminalError(
            f"`{command[0]}` did not answer about ticket `{ticket}` within {timeout_s:g} s",
            hint="try again, or raise `ticket_check_ms` under `[approvals]` in the settings",
        )
    if done.code != 0:
        raise SubluminalError(
            f"ticket `{ticket}` was refused: {_last_line(done)}",
            hint=f"`{command[0]}` checks tickets (`ticket_check` in the settings)",
        )


def _last_line(done: Trial) -> str:
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_MAX_LINE_CHARS] if lines else f"exit code {done.code}"
