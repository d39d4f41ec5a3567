"""Hosts for tests, with given policies instead of files."""

from collections.abc import Callable, Sequence
from pathlib import Path

from subluminal.config.places import places
from subluminal.config.settings import RedactSettings, Settings
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Gate
from subluminal.contracts.identity import Identity
from subluminal.contracts.limits import MAX_INSPECT_BYTES, MAX_PREVIEW_BYTES
from subluminal.contracts.vocabulary import Layer
from subluminal.core.enforcer import Enforcer
from subluminal.core.host import Host
from subluminal.core.live_settings import LiveSettings
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import Policies
from subluminal.core.records.previews import Previewer
from subluminal.core.records.redaction.redactor import redactor_for
from subluminal.core.runs.open_runs import Parts
from subluminal.core.runs.opening import ALONE, Sharing
from subluminal.core.threaded_host import ThreadedHost
from subluminal.policy.evaluation import Engine
from subluminal.policy.snapshot import Snapshot


class FixedPolicies(Policies):
    """Snapshots that are in force from the start, and never change."""

    def __init__(
        self, snapshots: Sequence[Snapshot], identity: Identity, gates: Sequence[Gate] = ()
    ) -> None:
        self._made = Engine([(Layer.REPOSITORY, each) for each in snapshots], identity, gates)
        self.generation = 0

    @property
    def loading(self) -> bool:
        return False

    @property
    def problem(self) -> str | None:
        return None

    @property
    def refusal(self) -> Decision | None:
        return None

    def engine_for(self, run_id: str) -> Engine:
        return self._made

    def actor_of(self, run_id: str) -> None:
        return None

    def forget(self, run_id: str) -> None:
        return

    def poll(self, mono_ms: int, *, force: bool = False) -> list[Load]:
        return []

    def drop_inherited(self) -> None:
        return

    def close(self) -> None:
        return


def previewer() -> Previewer:
    return Previewer(
        redactor_for(RedactSettings()),
        record_mode="metadata",
        max_bytes=MAX_PREVIEW_BYTES,
        full_bytes=MAX_INSPECT_BYTES,
    )


def host_in(
    home: Path,
    *policies: Snapshot,
    run_id: str = "run-1",
    sharing: Sharing = ALONE,
    gates: Sequence[Gate] = (),
    identity: Identity | None = None,
) -> Host:
    """A host as a door holds it. Its run is not fixed: calls may name another."""
    who = identity or Identity()
    where = places({"SUB_HOME": str(home)})
    make: Callable[..., Host] = ThreadedHost if sharing.threads else Host
    return make(
        Parts(where, who, FixedPolicies(policies, who, gates), previewer(), sharing),
        LiveSettings(where.settings, Settings()),
        run_id=run_id,
    )


def enforcer_in(home: Path, *policies: Snapshot, run_id: str = "run-1") -> Enforcer:
    """The enforcer of a host's own run."""
    host = host_in(home, *policies, run_id=run_id)
    host.open_run()
    return host._open[run_id]
