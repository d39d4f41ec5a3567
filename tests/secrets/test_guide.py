"""The secrets guide is true: its settings load, its policy works, its tables are complete."""

import json
import re
from pathlib import Path
from typing import Any

from subluminal.config.agent_environment import MARKERS
from subluminal.config.loading import parse_settings
from subluminal.core.records.redaction.matching import MAX_HITS, check_pattern
from subluminal.core.records.redaction.redactor import Redactor
from subluminal.importer.overrides import RESERVED_VARIABLES
from subluminal.secrets.client_credentials import CLIENT_CREDENTIALS
from subluminal.secrets.steering_variables import STEERING_VARIABLES

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "guides" / "secrets.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(GUIDE) if name == language]


def test_the_settings_load() -> None:
    assert len(blocks("toml")) == 4
    for text in blocks("toml"):
        settings = parse_settings(text.encode(), "config.toml")
        for pattern in settings.redact.patterns:
            check_pattern(pattern.name, pattern.pattern)


def test_the_policy_lets_the_placeholder_pass_and_nothing_else(sub: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(blocks("yaml")[0])
    for value, action in (("Bearer ${ACME_TOKEN}", "ALLOW"), ("Bearer abc", "REJECT_WITH_HINT")):
        words = ["--policy", str(policy), "--server", "web", "--tool", "fetch"]
        args = json.dumps({"authorization": value})
        ran = sub("policy", "explain", *words, "--args", args, "--json")
        assert f'"action":"{action}"' in ran.out, ran


def test_placeholders_are_not_masked() -> None:
    for text in ('{"password": "${ACME_TOKEN}"}', "api_key=<YOUR_KEY>", "secret: {{ vault }}"):
        assert Redactor().redact(text) == (text, ())


def test_every_credential_of_a_client_is_listed() -> None:
    for name, owner in CLIENT_CREDENTIALS.items():
        assert f"| `{name}` | {owner} |" in GUIDE
    assert f"more than {MAX_HITS} hits" in GUIDE


def test_every_variable_that_changes_what_runs_is_listed() -> None:
    for name, what in STEERING_VARIABLES.items():
        assert f"| `{name}` | {what} |" in GUIDE


def test_every_variable_that_a_project_may_not_set_is_listed() -> None:
    page = (DOCS / "guides" / "import.md").read_text("utf-8")
    for name, why in RESERVED_VARIABLES.items():
        assert f"| `{name}` | {why} |" in page


def test_the_markers_named_are_markers() -> None:
    page = (DOCS / "concepts" / "agents-with-a-shell.md").read_text("utf-8")
    named = re.search(r"marker variable \((.*?), …\)", page, re.DOTALL)
    assert named is not None
    assert set(re.findall(r"`(\w+)`", named[1])) <= {marker.name for marker in MARKERS}
