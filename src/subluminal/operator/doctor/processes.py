"""What earlier runs left: orphans, and runs that nobody closed."""

from collections.abc import Iterator

from subluminal.config.places import Places
from subluminal.ledger.client.roll_call import close_what_died
from subluminal.operator.doctor.checks import Check
from subluminal.supervise.orphans import find_orphans


def check(places: Places) -> Iterator[Check]:
    orphans = find_orphans()
    if orphans:
        told = "; ".join(f"{each.pid} ({each.reason})" for each in orphans[:5])
        yield Check(
            "orphans",
            False,
            f"{len(orphans)} processes are left over: {told}",
            "`kill PID` ends one",
        )
    else:
        yield Check("orphans", True, "no process is left over")
    closed = close_what_died(places)
    detail = f"closed {closed} runs whose processes died" if closed else "no run was left open"
    yield Check("runs", True, detail)
