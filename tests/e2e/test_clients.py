"""Every client runs as the other tests need it: its own tools, two servers, calls at once."""

from collections.abc import Callable

from tests.e2e.clients import Programs
from tests.e2e.desk import Desk
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import Kind


def test_a_client_runs_its_own_tools_and_a_server_s(
    any_kind: Kind,
    desk: Desk,
    programs: Programs,
    model: Callable[..., FakeModel],
    probe: list[str],
    remote: str,
) -> None:
    tools, new = any_kind.tools, desk.project / "new.txt"
    together = [tools.shell("echo one of two"), tools.shell("echo two of two")]
    served = [ToolCall(server, "echo", {"text": f"by {server}"}) for server in ("near", "far")]
    own = [tools.shell("echo from the shell"), tools.write(new, "text\n"), together]
    fake = model([*own, *served])
    any_kind.write_config(desk, fake, {"near": probe, "far": remote})
    agent = any_kind.start(desk, programs, fake)
    assert agent.wait() == 0, agent.said

    shell, _, first, second, near, far = fake.last_results()
    assert "from the shell" in shell
    assert new.read_text() == "text\n"
    both = first + second  # Claude Code gives them in the order in which they ended
    assert "one of two" in both
    assert "two of two" in both
    assert "echo: by near" in near
    assert "echo: by far" in far
    assert any_kind.session_of(agent.out)
