"""Interactive Codex is kept from sharing its servers with other runs."""

import pytest

from subluminal.operator.running.agent import adjusted


@pytest.mark.parametrize(
    "command",
    [["codex"], ["/opt/bin/codex", "mend the build"], ["codex", "resume"], ["codex", "-m", "o9"]],
)
def test_interactive_codex_runs_without_its_daemon(command):
    changed, told = adjusted(command)
    assert changed == [command[0], "--no-daemon", *command[1:]]
    assert (
        told == "added `--no-daemon`, because a shared Codex daemon would mix this run with others"
    )


@pytest.mark.parametrize(
    "command",
    [["codex", "exec", "x"], ["codex", "--no-daemon"], ["codex", "--help"], ["claude"], ["codexx"]],
)
def test_anything_else_is_left_alone(command):
    assert adjusted(command) == (command, None)
