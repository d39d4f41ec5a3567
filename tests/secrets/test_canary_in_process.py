"""Secrets through the in-process door: not one is in any byte that we write (Pack 6.4, kernel.md 2).

An agent's own process has no bindings: what is masked are known shapes and `[redact]` patterns. The
secrets stand in payloads, states, nonces, in what a pack says, and in what a handler returns or
raises.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.kernel import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    Execute,
    IntentEnvelope,
    Pack,
    Plan,
    PolicyBundle,
    Refuse,
    RequestConfirmation,
    Rewrite,
    basis,
    build_envelope,
    named,
    refuse,
    static_planner,
    system_taint_policy,
)
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.sdk import KernelDoor, open_kernel

KIND = "note.write"
PATTERN = '[[redact.patterns]]\nname = "canary"\npattern = "cnry_[0-9a-z]{20}"\n'
_WHY = (basis("business", "rule_violated"),)


def canary(number: int) -> str:
    """A secret of our own pattern, or one of a known shape."""
    own = f"cnry_{number:020}"
    return own if number % 2 else f"ghp_{number:036}"


def speak(envelope: IntentEnvelope, state: Any) -> Decision:
    """Answers as the payload says, with the secret in every text of the answer."""
    text, answer = f"because of {state['said']}", envelope.payload["answer"]
    capped = build_envelope(
        envelope.kind,
        {**envelope.payload, "answer": "Execute", "more": text},
        actor=envelope.actor,
        taint=envelope.taint,
        nonce=envelope.nonce,
        created_at=envelope.created_at,
        origin=envelope.origin,
    )
    answers: dict[str, Callable[[], Decision]] = {
        "Execute": lambda: Execute((basis("business", "rule_satisfied", why=text),)),
        "Refuse": lambda: Refuse(refuse("SECURITY", "note.refused", text, text), _WHY),
        "Escalate": lambda: Escalate(EscalateTo.HUMAN, text, _WHY),
        "Confirm": lambda: RequestConfirmation(text, _WHY),
        "Defer": lambda: Defer("note.signal", 1_000, _WHY),
        "Rewrite": lambda: Rewrite(capped, text, (basis("business", "quantity_capped"),)),
    }
    if answer == "Raise":
        raise ValueError(text)
    return answers[answer]()


ANSWERS = ("Execute", "Refuse", "Escalate", "Confirm", "Defer", "Rewrite", "Raise")


def pack() -> Pack:
    policy = PolicyBundle((), (), system_taint_policy(()), (named("speak", speak),), "REFUSE")
    return Pack(
        id="notes",
        version="1",
        intents=(KIND,),
        policy=policy,
        planner=static_planner(Plan((), (KIND,))),
        basis_codes=("note.refused",),
        signals=("note.signal",),
    )


@pytest.fixture(params=["off", "metadata", "full"])
def home(own_home: Path, request: pytest.FixtureRequest) -> Iterator[Home]:
    own_home.mkdir(mode=0o700)
    own_home.joinpath("config.toml").write_text(f"[record]\nmode = '{request.param}'\n{PATTERN}")
    made = Home(str(own_home))
    yield made
    made.close()


def propose(door: KernelDoor, number: int, answer: str) -> None:
    """Proposes an intent that is full of one secret, whose handler returns or raises it."""
    secret = canary(number)

    def handler(_envelope: IntentEnvelope) -> dict[str, str]:
        if number % 3 == 0:
            raise OSError(f"cannot reach {secret}")
        return {"token": secret}

    payload = {"answer": answer, "note": secret, "deep": [{secret: [secret]}], f"k-{secret}": 1}
    given: Any = {"state": {"said": secret, "list": [secret]}, "nonce": f"n-{secret}"}
    try:
        door.execute(KIND, payload, handler=handler, **given)
        door.decide(KIND, payload, **given)
    except OSError:
        pass


@requirement("6.4:no-leak", "kernel:records-masked")
def test_no_secret_of_an_intent_is_in_any_byte_that_we_write(home: Home, own_home: Path) -> None:
    with open_kernel(pack(), run_id="run-1") as door:
        for number in range(3 * len(ANSWERS)):
            propose(door, number, ANSWERS[number % len(ANSWERS)])
        door.lower_taint("UNTRUSTED", source=f"a page with {canary(1)}")
    home.ingest()
    assert home.verify().findings == []
    assert home.rows("SELECT count(*) FROM intents") != [(0,)]
    while index_some(home.store.connection, 1 << 50):
        pass
    home.restart()
    files = [path for path in own_home.rglob("*") if path.is_file()]
    assert {"ledger.db", "executions.db"} <= {path.name for path in files}
    for path in files:
        data = path.read_bytes()
        for number in range(3 * len(ANSWERS)):
            assert canary(number).encode() not in data, (path.name, number)
