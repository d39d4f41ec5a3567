"""Finds a pack by name or reference, and tells what it is and whether it conforms."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from subluminal.core.intents.packs import (
    LoadedPack,
    PackProblem,
    installed,
    load_pack,
    load_reference,
)
from subluminal.kernel import check_pack, guard_name
from subluminal.kernel.refusals import told


class CheckRow(NamedTuple):
    """One check, and the first fault that it found."""

    check: str
    passed: bool
    detail: str | None = None


class Listed(NamedTuple):
    """An installed pack; `loaded` is None if it cannot be used, and `problem` says why."""

    name: str
    loaded: LoadedPack | None
    problem: PackProblem | None

    def plain(self) -> dict[str, Any]:
        """Returns what `sub pack list --json` prints."""
        if self.loaded is None:
            nothing: dict[str, Any] = {"version": None, "fingerprint": None, "intents": []}
            return {"name": self.name, **nothing, "problem": str(self.problem)}
        return summary_of(self.loaded)


def find_pack(text: str) -> LoadedPack:
    """Loads a pack: `module:attribute`, or the name of an installed one. Raises PackProblem."""
    return load_reference(text) if ":" in text else load_pack(text)


def list_packs() -> list[Listed]:
    """Loads every installed pack."""
    return [_listed(name) for name in installed()]


def _listed(name: str) -> Listed:
    try:
        return Listed(name, load_pack(name), None)
    except PackProblem as problem:
        return Listed(name, None, problem)


def summary_of(loaded: LoadedPack) -> dict[str, Any]:
    """Returns name, version, fingerprint and intents of a pack."""
    return {
        "name": loaded.name,
        "version": loaded.version,
        "fingerprint": loaded.fingerprint,
        "intents": sorted(loaded.pack.intents),
    }


def describe(loaded: LoadedPack) -> dict[str, Any]:
    """Returns what a pack declares."""
    pack, policy = loaded.pack, loaded.pack.policy
    return {
        **summary_of(loaded),
        "id": pack.id,
        "contract": pack.contract,
        "basis_codes": sorted(pack.basis_codes),
        "signals": sorted(pack.signals),
        "guards": {
            "state": [guard_name(guard) for guard in policy.state_guards],
            "auth": [guard_name(guard) for guard in policy.auth_guards],
            "business": [guard_name(guard) for guard in policy.business],
        },
        "taint": dict(_levels(loaded)),
        "default": policy.default,
    }


def _levels(loaded: LoadedPack) -> Iterator[tuple[str, str | None]]:
    """Yields each intent with the level that it needs; None if the pack cannot tell."""
    for kind in sorted(loaded.pack.intents):
        try:
            yield kind, str(loaded.pack.policy.taint.minimum_for(kind))
        except (Exception, SystemExit):  # noqa: BLE001 - a pack's code may do anything
            yield kind, None


def check(text: str) -> list[CheckRow]:
    """Checks the shape of a pack, then what it does. Raises PackProblem if there is no pack."""
    try:
        pack = find_pack(text).pack
    except PackProblem as problem:
        if not problem.problems:
            raise
        return [CheckRow("shape", False, "; ".join(problem.problems))]
    try:
        results = check_pack(pack)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a pack's code may do anything
        said = f"the checks could not be asked: {type(error).__name__}: {told(error)}"
        return [CheckRow("shape", False, said)]
    asked = [CheckRow(result.check.value, result.passed, result.detail) for result in results]
    return [CheckRow("shape", True), *asked]
