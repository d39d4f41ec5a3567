"""Which servers a client starts, as it was observed with the real clients.

`tests/e2e/test_servers.py` asks the real Claude Code and Codex.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subluminal.importer.clients.description import Scene
from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.command_line import Options, Started, read_options
from subluminal.importer.expected import (
    MAX_SERVERS,
    Expectation,
    Standing,
    expected_servers,
)

Write = Callable[[str, str | bytes], Path]


def plain(*names: str, **more: Any) -> dict[str, Any]:
    return {"mcpServers": {name: {"command": "npx", "args": [name], **more} for name in names}}


def expect(client: str, cwd: Path, *words: str, home: str | None = None) -> Expectation:
    scene = Scene(os.environ, str(cwd))
    options = read_options(Started(client, list(words)))
    return expected_servers(CLIENTS[client], scene, home or os.environ["SUB_HOME"], options)


def names(client: str, cwd: Path, *words: str) -> list[str]:
    found = expect(client, cwd, *words)
    assert found.problems == ()
    return sorted(server.name for server in found.servers)


class TestClaude:
    """Claude Code 2.1."""

    @pytest.fixture
    def project(self, write: Write, user_home: Path) -> Path:
        """A repository in a folder with a configuration of its own."""
        root = user_home / "work" / "shop"
        (root / ".git").mkdir(parents=True)
        (root / "sub").mkdir()
        projects = {
            str(root): plain("local_root"),
            str(root / "sub"): plain("local_sub"),
            "/other": plain("other"),
        }
        write(".claude.json", json.dumps({**plain("user"), "projects": projects}))
        write("work/.mcp.json", json.dumps(plain("above")))
        write("work/shop/.mcp.json", json.dumps(plain("project", "project2")))
        write("work/shop/sub/.mcp.json", json.dumps(plain("project_sub")))
        return root

    def change(self, project: Path, user_home: Path, **more: Any) -> None:
        """Adds to the project's part of the user's file."""
        file = user_home / ".claude.json"
        whole = json.loads(file.read_text())
        whole["projects"][str(project)] |= more
        file.write_text(json.dumps(whole))

    def test_all_scopes(self, project: Path) -> None:
        root = ["above", "local_root", "project", "project2", "user"]
        assert names("claude", project) == root
        assert names("claude", project / "sub") == sorted([*root, "project_sub"])

    def test_outside_of_a_repository(self, project: Path, user_home: Path) -> None:
        (project / ".git").rmdir()
        found = ["above", "local_sub", "project", "project2", "project_sub", "user"]
        assert names("claude", project / "sub") == found

    def test_a_worktree_is_filed_under_its_repository(self, project: Path, user_home: Path) -> None:
        inner = project / ".git" / "worktrees" / "tree"
        inner.mkdir(parents=True)
        (inner / "commondir").write_text("../..\n")
        tree = user_home / "tree"
        tree.mkdir()
        (tree / ".git").write_text(f"gitdir: {inner}\n")
        assert names("claude", tree) == ["local_root", "user"]

    def test_a_link_to_the_project(self, project: Path, user_home: Path) -> None:
        (user_home / "link").symlink_to(project)
        assert "local_root" in names("claude", user_home / "link")

    def test_refused_by_the_person(self, project: Path, user_home: Path, write: Write) -> None:
        self.change(project, user_home, disabledMcpServers=["user", "project"])
        assert names("claude", project) == ["above", "local_root", "project2"]
        self.change(project, user_home, disabledMcpServers=[], disabledMcpjsonServers=["project"])
        assert names("claude", project) == ["above", "local_root", "project2", "user"]
        write("work/shop/.claude/settings.local.json", '{"disabledMcpjsonServers": ["project2"]}')
        assert names("claude", project) == ["above", "local_root", "user"]
        write(".claude/settings.json", '{"deniedMcpServers": [{"serverName": "user"}]}')
        assert names("claude", project) == ["above", "local_root"]

    def test_a_broken_settings_file_refuses_nobody(self, project: Path, write: Write) -> None:
        write(".claude/settings.json", "{")
        assert "user" in names("claude", project)

    def test_keys_that_claude_ignores(self, user_home: Path, write: Write) -> None:
        write(".claude.json", json.dumps(plain("fs", disabled=True, enabled=False)))
        assert names("claude", user_home) == ["fs"]

    def test_the_command_line(self, project: Path, write: Write) -> None:
        file = str(write("more.json", json.dumps(plain("given"))))
        assert "given" in names("claude", project, "--mcp-config", file)
        assert names("claude", project, "--mcp-config", file, "--strict-mcp-config") == ["given"]
        text = json.dumps(plain("spelled"))
        assert names("claude", project, "--mcp-config", text, "--bare") == ["spelled"]
        assert names("claude", project, "--safe-mode") == []
        assert names("claude", project, "--setting-sources", "user") == ["user"]
        (problem,) = expect("claude", project, "--mcp-config", "missing.json").problems
        assert "missing.json" in problem

    def test_the_nearest_of_one_name_counts(self, project: Path, write: Write) -> None:
        wrapped = {"command": "sub", "args": ["shim", "stdio", "--server", "user", "--", "npx"]}
        write("work/shop/.mcp.json", json.dumps({"mcpServers": {"user": wrapped}}))
        (found,) = [s for s in expect("claude", project).servers if s.name == "user"]
        assert found.standing is Standing.WRAPPED


class TestCodex:
    """Codex 0.166."""

    @pytest.fixture
    def project(self, write: Write, user_home: Path) -> Path:
        root = user_home / "shop"
        (root / ".git").mkdir(parents=True)
        entry = '[mcp_servers.{}]\ncommand = "npx"\n'
        write(
            ".codex/config.toml",
            "".join(map(entry.format, ("user", "shadow")))
            + entry.format("off")
            + "enabled = false\n"
            + f'[projects."{root}"]\ntrust_level = "trusted"\n',
        )
        write(".codex/work.config.toml", entry.format("profiled"))
        write(
            "shop/.codex/config.toml",
            entry.format("project") + "[mcp_servers.shadow]\nenabled = false\n",
        )
        return root

    def test_layers(self, project: Path, user_home: Path) -> None:
        assert names("codex", project, "exec", "x") == ["project", "user"]
        assert names("codex", user_home, "exec", "x") == ["shadow", "user"]
        assert names("codex", user_home, "exec", "-C", "shop") == ["project", "user"]
        assert names("codex", user_home, "-p", "work") == ["profiled", "shadow", "user"]

    def test_the_command_line(self, project: Path, user_home: Path) -> None:
        words = ["-c", "mcp_servers.added.command=npx", "-c", "mcp_servers.user.enabled=false"]
        assert names("codex", user_home, "exec", *words) == ["added", "shadow"]
        table = 'mcp_servers={tab={command="x"}}'
        assert names("codex", user_home, "exec", "-c", table) == ["shadow", "tab", "user"]


def test_gemini_lists(user_home: Path, write: Write) -> None:
    settings = {**plain("a", "b", "c"), "mcp": {"excluded": ["b"]}}
    write(".gemini/settings.json", json.dumps(settings))
    assert names("gemini", user_home) == ["a", "c"]
    write(".gemini/settings.json", json.dumps({**settings, "mcp": {"allowed": ["b"]}}))
    assert names("gemini", user_home) == ["b"]


def test_opencode_switches(user_home: Path, write: Write) -> None:
    entry = {"type": "local", "command": ["npx", "x"]}
    mcp = {"a": entry, "b": {**entry, "enabled": False}, "c": {**entry, "disabled": True}}
    write(".config/opencode/opencode.json", json.dumps({"mcp": mcp}))
    assert names("opencode", user_home) == ["a"]


class TestStanding:
    """Whether a shim of the server would record in the home of the run."""

    def standing(self, user_home: Path, write: Write, entry: dict[str, Any]) -> Standing:
        write(".claude.json", json.dumps({"mcpServers": {"fs": entry}}))
        (found,) = expect("claude", user_home).servers
        return found.standing

    def wrapped(self, *more: str, **rest: Any) -> dict[str, Any]:
        return {
            "command": "sub",
            "args": ["shim", "stdio", "--server", "fs", *more, "--", "x"],
            **rest,
        }

    @pytest.mark.parametrize(
        ("entry", "standing"),
        [
            ({"command": "npx"}, Standing.UNWRAPPED),
            ({"command": "sub", "args": ["shim"]}, Standing.UNWRAPPED),
            ({"type": "http", "url": "https://x"}, Standing.REMOTE),
            ({"nothing": 1}, Standing.UNWRAPPED),
            (7, Standing.UNWRAPPED),
        ],
        ids=str,
    )
    def test_without_a_shim(
        self, user_home: Path, write: Write, entry: Any, standing: Standing
    ) -> None:
        assert self.standing(user_home, write, entry) is standing

    def test_homes(self, user_home: Path, write: Write) -> None:
        ours = os.environ["SUB_HOME"]
        assert self.standing(user_home, write, self.wrapped()) is Standing.WRAPPED
        assert self.standing(user_home, write, self.wrapped("--home", ours)) is Standing.WRAPPED
        other = self.wrapped("--home", "/elsewhere")
        assert self.standing(user_home, write, other) is Standing.ELSEWHERE
        inside = self.wrapped(env={"SUB_HOME": "/elsewhere"})
        assert self.standing(user_home, write, inside) is Standing.ELSEWHERE
        expanded = self.wrapped("--home", "${HOME}/x")
        assert self.standing(user_home, write, expanded) is Standing.WRAPPED

    def test_codex_clears_the_environment(self, user_home: Path, write: Write) -> None:
        words = 'command = "sub"\nargs = ["shim", "stdio", "--server", "fs", "--", "x"]\n'
        write(".codex/config.toml", f"[mcp_servers.fs]\n{words}")
        (found,) = expect("codex", user_home).servers
        assert (found.standing, found.home) == (
            Standing.ELSEWHERE,
            str(user_home / ".subluminal"),
        )
        (found,) = expect("codex", user_home, home=str(user_home / ".subluminal")).servers
        assert found.standing is Standing.WRAPPED
        write(".codex/config.toml", f'[mcp_servers.fs]\n{words}env_vars = ["SUB_HOME"]\n')
        (found,) = expect("codex", user_home).servers
        assert found.standing is Standing.WRAPPED

    def test_the_name_that_the_shim_uses(self, user_home: Path, write: Write) -> None:
        entry = {"command": "sub", "args": ["shim", "stdio", "--server", "files", "--", "x"]}
        write(".claude.json", json.dumps({"mcpServers": {"fs": entry}}))
        assert names("claude", user_home) == ["files"]


class TestRubbish:
    """Files that nobody can make sense of."""

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": {"a": 1, "a": 2}}', b"\xff"])
    def test_it_is_a_problem(self, user_home: Path, write: Write, text: str | bytes) -> None:
        write(".claude.json", text)
        found = expect("claude", user_home)
        assert (found.servers, len(found.problems)) == ((), 1)

    @pytest.mark.parametrize(
        "text", ['{"mcpServers": 7, "projects": []}', '{"projects": {"x": 1}}', "{}"]
    )
    def test_it_has_no_servers(self, user_home: Path, write: Write, text: str) -> None:
        write(".claude.json", text)
        assert names("claude", user_home) == []

    def test_a_pipe_in_place_of_the_file(self, user_home: Path) -> None:
        os.mkfifo(user_home / ".claude.json")
        assert len(expect("claude", user_home).problems) == 1

    def test_too_many_servers(self, user_home: Path, write: Write) -> None:
        write(".claude.json", json.dumps(plain(*(f"s{n}" for n in range(MAX_SERVERS + 1)))))
        found = expect("claude", user_home)
        assert len(found.servers) == MAX_SERVERS
        assert "more than 256 servers" in found.problems[0]

    def test_no_files_at_all(self, user_home: Path) -> None:
        for name in CLIENTS:
            scene = Scene(os.environ, str(user_home))
            found = expected_servers(CLIENTS[name], scene, "/x", Options())
            assert (found.servers, found.problems) == ((), ())
