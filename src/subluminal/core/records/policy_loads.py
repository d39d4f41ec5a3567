"""Writes the policy_loaded events of a run: which policies came into force, which were refused."""

from msgspec import UNSET, Raw, UnsetType

from subluminal.config.places import recordable
from subluminal.contracts.events import PolicyLoad, PolicyLoaded
from subluminal.contracts.limits import MAX_POLICY_EVENT_BYTES
from subluminal.core.policies.layer import Load
from subluminal.core.runs.run import Run
from subluminal.policy.snapshot import Snapshot


def record_loads(run: Run, loads: list[Load]) -> None:
    """Records in a run which policies came into force and which were refused."""

    def write() -> None:
        for load in loads:
            found = load.snapshot
            details = PolicyLoad(
                layer=load.layer,
                ok=found is not None,
                mode=UNSET if found is None else found.mode,
                file=recordable(load.path),
                problem=recordable(load.problem) or UNSET,
            )
            run.emit(
                PolicyLoaded,
                policy=UNSET if found is None else found.ref,
                load=details,
                snapshot=UNSET if found is None else _embedded(found),
            )

    run.record(write)


def _embedded(snapshot: Snapshot) -> Raw | UnsetType:
    text = snapshot.to_json()
    return Raw(text) if len(text) <= MAX_POLICY_EVENT_BYTES else UNSET
