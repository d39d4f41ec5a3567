"""Answers to approvals that a function of the program gives, written as `sub approve` does it."""

from subluminal.contracts.vocabulary import Requirement
from subluminal.core.host import Host


class HomeAnswers:
    """Writes answers into the home of a guard."""

    def is_open(self, host: Host, approval_id: str) -> bool:
        """Whether nobody has answered yet."""
        from subluminal.operator.approving import named  # most programs never answer

        waiting = named(host.places, approval_id)
        return waiting is not None and waiting.state == "pending"

    def approve(
        self,
        host: Host,
        approval_id: str,
        *,
        reason: str,
        ticket: str | None,
        met: Requirement | None,
    ) -> None:
        """Lets one try of the call pass, if the ticket is accepted. Raises SubluminalError."""
        from subluminal.operator.approving import approve

        approve(
            host.places,
            approval_id,
            reason=reason,
            ticket=ticket,
            met=met,
            settings=host.settings.approvals,
        )

    def deny(self, host: Host, approval_id: str, *, reason: str) -> None:
        """Refuses further tries of the call. Raises SubluminalError."""
        from subluminal.operator.approving import deny

        deny(host.places, approval_id, reason=reason)
