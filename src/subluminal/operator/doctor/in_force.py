"""What holds right now: what is stopped, and which policy the runs that live are under.

The shims said it themselves when it came into force: a file that does not compile is on disk, and
yet the one before it decides.
"""

import json
from collections.abc import Iterator
from typing import Any

from subluminal.config.places import Places
from subluminal.contracts.vocabulary import EventType
from subluminal.core.controls.kill_switch import stops
from subluminal.core.runs.attendance import attendances
from subluminal.core.runs.living import living_runs
from subluminal.core.runs.names import journal_dir
from subluminal.journal.reading import files_in
from subluminal.operator.doctor.checks import Check

_LOADED = b'"type":"%b"' % EventType.POLICY_LOADED.encode()
_NAME = "in force"


def check_stops(places: Places) -> Iterator[Check]:
    try:
        found = stops(places.state)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        detail = f"what is stopped cannot be read, so everything is: {reason}"
        yield Check("kill switch", False, detail)
        return
    if not found:
        yield Check("kill switch", True, "nothing is stopped")
        return
    told = "; ".join(stop.problem or f"{stop.scope} {stop.target}".rstrip() for stop in found)
    wide = any(stop.problem or stop.scope == "all" for stop in found)
    hint = "`sub kill --list` tells who and why; `sub revive` lifts it"
    yield Check("kill switch", not wide, f"stopped: {told}", hint)


def check_policies(places: Places) -> Iterator[Check]:
    for run in living_runs(places):
        loads: dict[str, dict[str, Any]] = {}
        problems: dict[str, str] = {}
        for event in _loads(places, run.run_id, run.pids):
            layer, load = event["load"]["layer"], event["load"]
            if load["ok"]:
                loads[layer] = event["policy"]
                problems.pop(layer, None)
            else:
                problems[layer] = f"`{load.get('file', '')}` was refused: {load.get('problem', '')}"
        holds = ", ".join(
            f"{each['policy_id']} {each['policy_version']} ({layer}, {each['policy_hash'][:8]})"
            for layer, each in loads.items()
        )
        detail = f"run {run.run_id}: {holds or 'no policy'}"
        if problems:
            told = "; ".join(problems.values())
            hint = "mend it: `sub policy lint` tells what is wrong"
            yield Check(_NAME, False, f"{detail}; {told}", hint)
        else:
            yield Check(_NAME, True, detail)


def _loads(places: Places, run_id: str, pids: tuple[int, ...]) -> list[dict[str, Any]]:
    """What the run's living shims said of their policies, oldest first."""
    shims = {
        each.source.shim_id
        for pid in pids
        for each in attendances(places, pid)
        if each.run_id == run_id
    }
    found: list[dict[str, Any]] = []
    for file in files_in(journal_dir(places, run_id), run_id):
        if file.shim in shims:
            found += _loads_in(file.path)
    return sorted(found, key=lambda event: str(event["ts"]))


def _loads_in(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            lines = [line for line in file if _LOADED in line[:64] and line.endswith(b"\n")]
    except OSError:
        return []
    return [json.loads(line) for line in lines]
