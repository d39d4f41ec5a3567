"""What only a person may do is refused where an agent's client has left its mark."""

import pytest

from subluminal.config.agent_environment import MARKERS, agent_marker, refuse_inside_agent
from subluminal.errors import SubluminalError


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker.name)
def test_every_marker_refuses(marker) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(
        SubluminalError, match=f"`sub approve` is for a person.*`{marker.name}` is set"
    ):
        refuse_inside_agent({marker.name: "1", "HOME": "/h"}, "sub approve")


def test_a_persons_own_shell_is_let_through() -> None:
    environ = {
        "HOME": "/h",
        "CODEX_HOME": "/h/.codex",
        "CLAUDE_CONFIG_DIR": "/h/c",
        "CLAUDECODE": "",
    }
    assert agent_marker(environ) is None
    refuse_inside_agent(environ, "sub approve")
