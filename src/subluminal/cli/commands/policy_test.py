"""`sub policy test CASES…`: runs golden cases, and tells which rules they reach."""

import os
from typing import Any

import msgspec

from subluminal.cli.files import STDIN, display_name, load_policy, read_file
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.policy_terms import add_signature, terms_of
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Layer
from subluminal.core.contents.source import data_in
from subluminal.core.policies.installed import find_installed, installed_judge
from subluminal.errors import ExitCode
from subluminal.operator.policies import Policy
from subluminal.policy.case_running import CaseResult, run_case
from subluminal.policy.casefile import LoadedCase, parse_cases
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.terms import Terms

EXAMPLE = """sub policy test cases.yaml
sub policy test --coverage tests/policy/*.yaml"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("files", nargs="+", metavar="CASES", help="a case file; `-` reads stdin")
    parser.add_argument(
        "--coverage", action="store_true", help="list the rules that no call matched"
    )
    add_signature(parser)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per case, then a summary"
    )


def run(args: Args, out: Output) -> int:
    tester = _Tester(out, terms_of(args), as_json=args.json)
    # All files are read before a case runs: a broken file is an error, not a failed case.
    cases = [
        (path, case, tester.layers_of(case, path))
        for path in args.files
        for case in parse_cases(read_file(path), display_name(path), find_installed)
    ]
    for path, case, policies in cases:
        tester.run(path, case, policies)
    if args.coverage:
        tester.tell_coverage()
    tester.tell_summary(len(args.files))
    return ExitCode.NO if tester.failed else ExitCode.OK


class Coverage:
    """Which rules of each policy any call matched. Disabled rules are in no snapshot."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._rules: dict[str, dict[str, bool]] = {}

    def add(self, name: str, snapshot: Snapshot, matched: set[tuple[str, str]]) -> None:
        """Adds the rules that one case reached. Equal policies count as one."""
        key = snapshot.policy_hash
        self._names.setdefault(key, name)
        rules = self._rules.setdefault(
            key, {rule["rule_id"]: False for rule in snapshot.data["rules"]}
        )
        for rule_id in rules:
            rules[rule_id] = rules[rule_id] or (key, rule_id) in matched

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per policy, in the order of their first cases."""
        return [
            {
                "policy": self._names[key],
                "rules": len(rules),
                "matched": sum(rules.values()),
                "never_matched": [rule_id for rule_id, hit in rules.items() if not hit],
            }
            for key, rules in self._rules.items()
        ]


class _Tester:
    """Runs cases, prints failures, and counts."""

    def __init__(self, out: Output, terms: Terms, *, as_json: bool) -> None:
        self._out = out
        self._terms = terms
        self._as_json = as_json
        self._files: dict[str, Policy] = {}
        self._coverage = Coverage()
        self._cases = 0
        self.failed = 0

    def layers_of(self, case: LoadedCase, path: str) -> list[tuple[Layer, str, Policy]]:
        """Loads the policies of a case; paths are relative to the case file."""
        return [self._policy(layer, source, path) for layer, source in case.policies]

    def _policy(self, layer: Layer, source: Any, path: str) -> tuple[Layer, str, Policy]:
        if not isinstance(source, str):
            policy = Policy(compile_bundle(source.bundle), source.bundle, source)
            return layer, f"{source.file}:{source.node.place.line}", policy
        base = "" if path == STDIN else os.path.dirname(path)
        found = os.path.join(base, source)
        if found not in self._files:
            self._files[found] = load_policy(found, self._terms)
        return layer, found, self._files[found]

    def run(self, path: str, case: LoadedCase, policies: list[tuple[Layer, str, Policy]]) -> None:
        """Runs one case."""
        layers = [(layer, policy.snapshot) for layer, _, policy in policies]
        result = run_case(case, layers, _targets_of, installed_judge, data_in)
        self._cases += 1
        self.failed += not result.passed
        for _, name, policy in policies:
            self._coverage.add(name, policy.snapshot, result.matched)
        if self._as_json:
            self._out.json(_row(path, case, result))
        else:
            self._print_failures(path, case, result)

    def _print_failures(self, path: str, case: LoadedCase, result: CaseResult) -> None:
        for failure in result.failures:
            call = case.case.calls[failure.call - 1]
            where = f"{display_name(path)}:{case.line}: {case.title}"
            which = f"call {failure.call} ({call.server}/{call.tool})"
            self._out.line(f"{self._out.paint('FAIL', 'red')} {shown(where)}: {shown(which)}")
            for field, wanted, got in failure.differences:
                self._out.line(f"     {field}: wanted {_told(wanted)}, got {_told(got)}")

    def tell_coverage(self) -> None:
        """Prints which rules no case has reached."""
        for row in self._coverage.rows():
            if self._as_json:
                self._out.json({"coverage": row})
                continue
            share = f"{row['matched']} of {row['rules']} rules matched"
            self._out.line(f"{shown(row['policy'])}: {share}")
            for rule_id in row["never_matched"]:
                self._out.line(f"     never matched: {shown(rule_id)}")

    def tell_summary(self, files: int) -> None:
        """Prints the totals."""
        passed = self._cases - self.failed
        if self._as_json:
            counts = {"files": files, "cases": self._cases, "passed": passed, "failed": self.failed}
            self._out.json({"summary": counts})
        else:
            noun = "case" if self._cases == 1 else "cases"
            self._out.line(f"{self._cases} {noun}: {passed} passed, {self.failed} failed")


def _targets_of(server: str, tool: str, args: dict[str, Any], cwd: str) -> Targets:
    from subluminal.core.targets.reading import targets_of  # loads the shell parser

    return targets_of(server, tool, args, cwd=cwd)


def _row(path: str, case: LoadedCase, result: CaseResult) -> dict[str, Any]:
    return {
        "file": display_name(path),
        "line": case.line,
        "note": case.case.note,
        "passed": result.passed,
        "failures": [
            {
                "call": failure.call,
                "differences": [difference._asdict() for difference in failure.differences],
            }
            for failure in result.failures
        ],
    }


def _told(value: Any) -> str:
    return shown(msgspec.json.encode(value).decode())
