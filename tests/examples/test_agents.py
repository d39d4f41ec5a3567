"""The example agents, run as their guide runs them."""

import subprocess
import sys
from pathlib import Path

from tests.adapters.records import calls_of, events_of
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "examples" / "agents" / "refunds.py"
GUIDE = ROOT / "docs" / "guides" / "an-agent-in-python.md"


@requirement("kernel:example")
def test_the_refunds_agent_does_what_its_guide_shows(own_home: Path):
    ran = subprocess.run(
        [sys.executable, str(AGENT)], capture_output=True, text=True, timeout=120, check=True
    )
    shown = GUIDE.read_text().split("$ python examples/agents/refunds.py\n")[1].split("$ sub")[0]
    lines = ran.stdout.splitlines()
    expected = [line.removesuffix("…").strip() for line in shown.splitlines()]
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)
    assert ran.stderr == ""

    calls = calls_of(events_of(own_home))
    actions = [call[1]["decision"]["action"] for call in calls]
    assert actions == ["ALLOW", "ALLOW", "REJECT_WITH_HINT", "REJECT_WITH_HINT", "BLOCK"]


def test_the_agent_has_forty_lines():
    assert len(AGENT.read_text().splitlines()) <= 40
