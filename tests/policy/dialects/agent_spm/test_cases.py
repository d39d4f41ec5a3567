"""Agent-SPM's behaviour, sentence by sentence, as golden cases with its own bundles."""

from pathlib import Path

import pytest
from tests.requirements import requirement

from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import LoadedCase, parse_cases
from subluminal.policy.compiling import compile_bundle

FILE = Path(__file__).parents[3] / "cases" / "agent_spm" / "evaluator.yaml"
CASES = [
    pytest.param(case, id=case.case.note) for case in parse_cases(FILE.read_bytes(), FILE.name)
]


@requirement("trust:dialect-agrees")
@pytest.mark.parametrize("loaded", CASES)
def test_the_engine_answers_as_the_case_wants(loaded: LoadedCase):
    layers = [(layer, compile_bundle(policy.bundle)) for layer, policy in loaded.policies]
    assert run_case(loaded, layers).failures == []
