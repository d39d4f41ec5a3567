"""What the in-process door costs: an intent that is decided, and one that is executed.

Both are compared with a call that passes a host without a pack, in turns, in one process. The pack
is `payments_pix`. Deciding adds its guards and an audit record with two hashes. Executing adds a
claim that is on disk before the handler runs, so it says more about the disk than about us; it has
no bar.
"""

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from math import inf

from bench.harness import Result, interleaved
from bench.stdio_peers import WORK
from subluminal.canonical import args_hash, encode
from subluminal.config.places import places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import Status, Transport
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding
from subluminal.core.runs.opening import Sharing
from subluminal.sdk import KernelDoor, open_kernel
from subluminal.wiring import open_host

_DECIDE_BAR = 20.0
_ROUNDS, _CALLS = 20, 50
_KIND = "pix.charge.refund"
_PAYLOAD = {"chargeId": "c-1", "refundCentavos": 4_000, "reason": "asked by mail"}
_STATE = {"charges": {"c-1": {"id": "c-1", "amountCentavos": 9_900, "status": "confirmed"}}}


def measure() -> Iterator[Result]:
    """Yields the cost of deciding and of executing, over a call without a pack."""
    home = WORK / "home" / "in_process"
    shutil.rmtree(home, ignore_errors=True)
    where = places({"SUB_HOME": str(home / "bare")})
    host = open_host(where, environ={"SUB_RUN_ID": "r"}, sharing=Sharing(threads=True))
    door = open_kernel("payments_pix", home=str(home / "pack"), run_id="r")
    try:
        tasks = [_passing(host), _deciding(door), _executing(door)]
        bare, decided, executed = interleaved(tasks, rounds=_ROUNDS, number=_CALLS)
    finally:
        host.close()
        door.close()
    for name, took, bar in (("decided", decided, _DECIDE_BAR), ("executed", executed, inf)):
        detail = f"{1 / took:,.0f} a second; {took * 1e6:.0f} us against {bare * 1e6:.0f} us"
        yield Result(f"an intent {name} in process", took / bare, bar, False, detail)


def _passing(host: Host) -> Callable[[], object]:
    text = encode(_PAYLOAD)
    call = ToolCall(
        server_name="payments_pix",
        tool_name=_KIND,
        args=_PAYLOAD,
        args_hash=args_hash(_PAYLOAD),
        bytes_in=len(text),
        transport=Transport.IN_PROCESS,
    )
    return lambda: host.finish(host.begin(call, text), CallEnding(Status.OK, 4, b"null"))


def _deciding(door: KernelDoor) -> Callable[[], object]:
    numbers = count()

    def decide() -> None:
        nonce = f"d-{next(numbers)}"
        assert door.decide(_KIND, _PAYLOAD, state=_STATE, nonce=nonce).action == "ALLOW"

    return decide


def _executing(door: KernelDoor) -> Callable[[], object]:
    numbers = count()

    def execute() -> None:
        nonce = f"e-{next(numbers)}"
        done = door.execute(
            _KIND, _PAYLOAD, state=_STATE, nonce=nonce, handler=lambda _envelope: None
        )
        assert done.action == "ALLOW"

    return execute
