"""Checks of what decides calls: policy files, the kill switch, and policies of living runs.

One check proves that a denied call is denied, by a real shim in a home of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from subluminal.config import env
from subluminal.config.places import Places
from subluminal.contracts.vocabulary import EventType
from subluminal.core.controls.stops import stops
from subluminal.core.policies.files import policy_files, read_policy
from subluminal.core.runs.attendance import attendances
from subluminal.core.runs.living import LivingRun, living_runs
from subluminal.core.runs.names import journal_dir
from subluminal.errors import SubluminalError
from subluminal.journal.reading import files_in
from subluminal.operator.doctor.checks import Check
from subluminal.operator.policies import layer_terms, parse_policy

_DENY_ALL = """\
policy_id: doctor
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: nothing
    kind: deny
    enabled: true
    severity: critical
    match: {}
    effect: {action: BLOCK, reason_code: SELF_TEST, message: nothing passes}
"""
# A server that leaves a file when a call reaches it. A denied call must not.
_UPSTREAM = "import sys;[open(sys.argv[1],'w') for l in sys.stdin if 'tools/call' in l]"
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "self_test"}}
_BLOCKED = -32081
_TIMEOUT_S = 30.0
_LOADED = b'"type":"%b"' % EventType.POLICY_LOADED.encode()
_IN_FORCE = "in force"


def check_files(places: Places) -> Iterator[Check]:
    """Compiles the policy file of every layer."""
    explicit = os.environ.get(env.SUB_POLICY.name)
    files = policy_files(places, os.getcwd(), explicit)
    found = [file for file in files if file.explicit or os.path.exists(file.path)]
    for file in found:
        name = f"policy ({file.layer})"
        try:
            terms = layer_terms(places, file.layer)
            bundle = parse_policy(read_policy(file.path), file.path, terms).bundle
        except SubluminalError as problem:
            hint = (
                f"run `sub policy lint {file.path}`; until it is fixed, new runs refuse all calls"
            )
            yield Check(name, False, str(problem), hint)
            continue
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            yield Check(name, False, f"cannot read `{file.path}`: {reason}")
            continue
        rules = f"{len(bundle.rules)} rule{'' if len(bundle.rules) == 1 else 's'}"
        detail = f"{bundle.policy_id} {bundle.version}, {bundle.mode}, {rules}: `{file.path}`"
        yield Check(name, True, detail)
    if not found:
        detail = f"no policy (`{places.policy}`): calls are recorded, and all are allowed"
        yield Check("policy", True, detail)


def check_deny(_places: Places) -> Iterator[Check]:
    """Sends a call that its policy denies through a real shim to a server that notices it."""
    with tempfile.TemporaryDirectory(prefix="subluminal-doctor-") as home:
        reached = os.path.join(home, "reached")
        with open(os.path.join(home, "policy.yaml"), "w", encoding="utf-8") as file:
            file.write(_DENY_ALL)
        answer = _ask(home, [sys.executable, "-I", "-S", "-c", _UPSTREAM, reached])
        denied = _is_denied(answer) and not os.path.exists(reached)
    if denied:
        yield Check("self-test", True, "a denied call was refused and never reached the server")
    else:
        yield Check(
            "self-test",
            False,
            "a denied call was not refused",
            "do not rely on this installation; `sub demo` shows what happens",
        )


def _ask(home: str, upstream: list[str]) -> bytes:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("SUB_") or name == env.SUB_PLAIN_POSIX.name
    }
    shim = [sys.executable, "-P", "-m", "subluminal", "shim", "stdio", "--server", "doctor"]
    try:
        ran = subprocess.run(
            [*shim, "--home", home, "--", *upstream],
            input=json.dumps(_CALL).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, env.SUB_HOME.name: home},
            cwd=home,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return b""
    return ran.stdout


def _is_denied(answer: bytes) -> bool:
    try:
        error = json.loads(answer)["error"]
    except (ValueError, KeyError):
        return False
    return bool(error["code"] == _BLOCKED and error["data"]["subluminal"]["rule_id"] == "nothing")


def check_stops(places: Places) -> Iterator[Check]:
    """Reports what the kill switch has stopped; fails if everything is."""
    try:
        found = stops(places.state)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        detail = f"the kill switch cannot be read, so everything is stopped: {reason}"
        yield Check("kill switch", False, detail)
        return
    if not found:
        yield Check("kill switch", True, "nothing is stopped")
        return
    told = "; ".join(stop.problem or f"{stop.scope} {stop.target}".rstrip() for stop in found)
    wide = any(stop.problem or stop.scope == "all" for stop in found)
    hint = "`sub kill --list` shows who stopped it and why; `sub revive` lifts it"
    yield Check("kill switch", not wide, f"stopped: {told}", hint)


def check_runs(places: Places) -> Iterator[Check]:
    """Reports the policies that living runs are under, by what their shims journalled.

    The files on disk do not tell: if a changed file does not compile, the version before stays in
    force.
    """
    for run in living_runs(places):
        loads: dict[str, dict[str, Any]] = {}
        problems: dict[str, str] = {}
        for event in _loads(places, run):
            layer, load = event["load"]["layer"], event["load"]
            if load["ok"]:
                loads[layer] = event["policy"]
                problems.pop(layer, None)
            else:
                problems[layer] = f"`{load.get('file', '')}` was refused: {load.get('problem', '')}"
        held = ", ".join(
            f"{each['policy_id']} {each['policy_version']} ({layer}, {each['policy_hash'][:8]})"
            for layer, each in loads.items()
        )
        detail = f"run {run.run_id}: {held or 'no policy'}"
        if problems:
            told = "; ".join(problems.values())
            hint = "fix the file: `sub policy lint` shows what is wrong"
            yield Check(_IN_FORCE, False, f"{detail}; {told}", hint)
        else:
            yield Check(_IN_FORCE, True, detail)


def _loads(places: Places, run: LivingRun) -> list[dict[str, Any]]:
    """Returns the policy_loaded events of the run's living shims, oldest first."""
    shims = {
        each.source.shim_id
        for pid in run.pids
        for each in attendances(places, pid)
        if each.run_id == run.run_id
    }
    found: list[dict[str, Any]] = []
    for file in files_in(journal_dir(places, run.run_id), run.run_id):
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
