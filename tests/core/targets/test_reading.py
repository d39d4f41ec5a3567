"""Targets of the clients' own tools and of tools that settings name (doors, section 1)."""

import os

import pytest

from subluminal.config.settings import ServerSettings, Settings, TargetSettings
from subluminal.core.targets.reading import targets_of
from subluminal.core.targets.table import CLIENT_TOOLS, table_for

PATCH = """*** Begin Patch
*** Add File: new/a.py
+import b
*** Update File: old.py
*** Move to: ../moved.py
@@
-x
+y
*** Delete File: /etc/gone
*** End Patch
"""
DIFF = """diff --git a/one.py b/one.py
--- a/one.py
+++ b/one.py
@@ -1 +1 @@
-x
+y
diff --git a/old b/new
rename from old
rename to new
--- /dev/null
+++ b/made
"""


def paths_of(found):
    return [(each.access, each.path) for each in found.paths]


@pytest.fixture
def repo(tmp_path, monkeypatch):
    folder = tmp_path / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "src").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def read(repo, server, tool, cwd=None, **args):
    return targets_of(server, tool, args, cwd=str(cwd or repo))


@pytest.mark.parametrize(
    ("server", "tool", "args"),
    [
        ("@claude", "Bash", {"command": "git push"}),
        ("@codex", "Bash", {"command": "git push"}),
        ("@codex", "shell", {"command": ["git", "push"]}),
        ("@codex", "exec_command", {"cmd": "git push"}),
        ("@gemini", "run_shell_command", {"command": "git push", "description": "x"}),
        ("@copilot", "bash", {"command": "git push", "sessionId": "1"}),
        ("@opencode", "bash", {"command": "git push", "description": "x"}),
    ],
)
def test_every_client_has_a_tool_for_commands(repo, server, tool, args):
    assert read(repo, server, tool, **args).commands == [["git", "push"]]


def test_a_list_of_words_may_start_a_shell(repo):
    """Codex: `["bash", "-lc", "…"]`."""
    found = read(repo, "@codex", "shell", command=["bash", "-lc", "cd src && rm y"], workdir="sub")
    assert found.commands[1:] == [["cd", "src"], ["rm", "y"]]
    assert paths_of(found) == [("write", f"{repo}/sub/src/y")]
    assert read(repo, "@codex", "shell", command=["git", 1]).opaque
    assert read(repo, "@codex", "shell", command=[]).opaque
    assert read(repo, "@codex", "shell", command="ls", workdir=1).opaque


@pytest.mark.parametrize(
    ("server", "tool", "args", "access"),
    [
        ("@claude", "Read", {"file_path": "src/a.py"}, {"read"}),
        ("@claude", "Write", {"file_path": "src/a.py", "content": "x"}, {"read", "write"}),
        ("@claude", "Edit", {"file_path": "src/a.py"}, {"read", "write"}),
        ("@claude", "NotebookEdit", {"notebook_path": "src/a.py"}, {"read", "write"}),
        ("@claude", "Grep", {"pattern": "x", "path": "src/a.py"}, {"read"}),
        ("@codex", "view_image", {"path": "src/a.py"}, {"read"}),
        ("@gemini", "read_file", {"absolute_path": "src/a.py"}, {"read"}),
        ("@gemini", "replace", {"file_path": "src/a.py"}, {"read", "write"}),
        ("@copilot", "create", {"path": "src/a.py"}, {"read", "write"}),
        ("@opencode", "edit", {"filePath": "src/a.py"}, {"read", "write"}),
    ],
)
def test_tools_for_files_name_a_path(repo, server, tool, args, access):
    found = read(repo, server, tool, **args)
    assert {each.access for each in found.paths} == access
    assert {each.path for each in found.paths} == {f"{repo}/src/a.py"}
    assert not found.opaque


def test_a_search_without_a_path_reads_the_working_directory(repo):
    assert paths_of(read(repo, "@claude", "Glob", pattern="*.py")) == [("read", str(repo))]


def test_links_are_resolved_and_kept(repo, tmp_path):
    """Both forms are matched: as written, and where the link leads."""
    (repo / "link").symlink_to("/etc")
    found = read(repo, "@claude", "Read", file_path="link/passwd")
    assert paths_of(found) == [("read", f"{repo}/link/passwd"), ("read", "/etc/passwd")]
    loop = repo / "loop"
    loop.symlink_to(loop)
    assert ("read", f"{repo}/loop/x") in paths_of(read(repo, "@claude", "Read", file_path="loop/x"))


def test_dots_are_removed_as_written_and_as_resolved(repo):
    (repo / "link").symlink_to("/usr/lib")
    found = read(repo, "@claude", "Read", file_path="link/../x")
    assert {path for _, path in paths_of(found)} == {f"{repo}/x", "/usr/x"}
    found = read(repo, "@claude", "Read", file_path="../../../../../../etc/x")
    assert paths_of(found) == [("read", "/etc/x")]


def test_a_tilde_in_a_tool_for_files_is_read_both_ways(repo):
    """Some clients resolve it, others do not."""
    home = os.environ["HOME"]
    found = read(repo, "@claude", "Read", file_path="~/x")
    assert {path for _, path in paths_of(found)} == {f"{home}/x", f"{repo}/~/x"}


def test_roots_are_the_repository(repo, tmp_path):
    (tmp_path / "way").symlink_to(repo)
    assert read(repo, "@claude", "Bash", command="ls", cwd=repo / "src").roots == [str(repo)]
    linked = read(repo, "@claude", "Bash", command="ls", cwd=tmp_path / "way")
    assert linked.roots == [str(tmp_path / "way"), str(repo)]
    outside = read(repo, "@claude", "Bash", command="ls", cwd=tmp_path / "home")
    assert outside.roots == [str(tmp_path / "home")]


def test_a_patch_writes_all_its_files(repo):
    for server, tool, name in (
        ("@codex", "apply_patch", "command"),
        ("@codex", "apply_patch", "input"),
        ("@opencode", "patch", "patchText"),
    ):
        found = read(repo, server, tool, **{name: PATCH})
        assert paths_of(found) == [
            ("write", f"{repo}/new/a.py"),
            ("write", f"{repo}/old.py"),
            ("write", f"{repo.parent}/moved.py"),
            ("write", "/etc/gone"),
        ]
    found = read(repo, "@codex", "apply_patch", input=DIFF)
    assert {path for _, path in paths_of(found)} == {
        f"{repo}/{name}" for name in ("one.py", "old", "new", "made")
    }


@pytest.mark.parametrize(
    "patch", ["", "nonsense", "*** Begin Patch\n*** End Patch", '--- "a/\\303"']
)
def test_a_patch_that_cannot_be_read_is_opaque(repo, patch):
    assert read(repo, "@codex", "apply_patch", input=patch).opaque


def test_urls_name_hosts(repo):
    assert read(repo, "@claude", "WebFetch", url="https://Example.COM/a?b").hosts == ["example.com"]
    found = read(
        repo, "@gemini", "web_fetch", prompt="see https://a.example/x and http://b.example."
    )
    assert found.hosts == ["a.example", "b.example"]
    assert read(repo, "@claude", "WebFetch", url="http://[::1]:80/").hosts == ["::1"]
    assert read(repo, "@claude", "WebFetch", url="nonsense").opaque
    assert read(repo, "@claude", "WebFetch", url="http://a%2eb/").opaque
    assert read(repo, "@claude", "WebFetch", url="http://a@b@c/").opaque


def test_what_the_table_does_not_know_has_no_targets(repo):
    found = read(repo, "files", "write_file", path="/etc/x")
    assert (found.paths, found.opaque) == ([], False)


def test_a_call_without_its_argument_is_opaque(repo):
    assert read(repo, "@claude", "Bash").opaque
    assert read(repo, "@claude", "Bash", command=None).opaque
    assert read(repo, "@claude", "Bash", command=7).opaque
    assert read(repo, "@claude", "Read", file_path="a\0b").opaque


def test_text_typed_into_a_program_is_opaque(repo):
    """Codex' `write_stdin`: nobody can tell what an open shell does with it."""
    assert read(repo, "@codex", "write_stdin", chars="rm -rf /\n").opaque


def test_an_unknown_working_directory_is_opaque(repo):
    assert targets_of("@claude", "Bash", {"command": "ls"}, cwd="").opaque


def test_settings_add_tools(repo):
    own = {
        "write_file": TargetSettings(path="path", access="write"),
        "run": TargetSettings(command="line", url="where"),
        "Bash": TargetSettings(patch="diff"),
    }
    table = table_for(
        Settings(
            servers={"files": ServerSettings(targets=own), "@claude": ServerSettings(targets=own)}
        )
    )
    args = {"path": ["a", "/b"]}
    found = targets_of("files", "write_file", args, cwd=str(repo), table=table)
    assert paths_of(found) == [("write", f"{repo}/a"), ("write", "/b")]
    args = {"line": "git x", "where": "http://h/"}
    found = targets_of("files", "run", args, cwd=str(repo), table=table)
    assert (found.commands, found.hosts) == ([["git", "x"]], ["h"])
    assert table["@claude"]["Read"] == CLIENT_TOOLS["@claude"]["Read"]
    assert targets_of("@claude", "Bash", {"diff": DIFF}, cwd=str(repo), table=table).paths


def test_settings_without_targets_leave_the_table_as_it_is():
    assert table_for(Settings()) is CLIENT_TOOLS


def test_a_pattern_may_lead_out_of_its_directory():
    """An allow for paths inside of the repository must not let `/etc/**` through."""

    def found(pattern):
        return targets_of("@claude", "Glob", {"pattern": pattern}, cwd="/code/repo")

    assert "/etc" in [each.path for each in found("/etc/*/x").paths]
    assert found("../**").opaque
    assert [each.path for each in found("src/**/*.py").paths] == ["/code/repo"]


@pytest.mark.parametrize(
    "header",
    [" *** Add File: ../x", "*** Add File:../x", "\t*** Delete File: ../x", "*** Move to:../x"],
)
def test_a_header_of_a_patch_may_have_other_blanks(header):
    """Codex trims the lines of a patch, and opencode needs no blank behind the colon."""
    patch = f"*** Begin Patch\n*** Add File: a\n+text\n{header}\n+text\n*** End Patch"
    found = targets_of("@codex", "apply_patch", {"command": patch}, cwd="/code/repo")
    assert "/code/x" in [each.path for each in found.paths]


@pytest.mark.parametrize(
    "header", ["*** Rename File: ../x", "***  Add  File: ../x", "*** Add File: "]
)
def test_a_patch_with_an_unknown_header_is_opaque(header):
    patch = f"*** Begin Patch\n*** Add File: a\n+text\n{header}\n+text\n*** End Patch"
    assert targets_of("@codex", "apply_patch", {"command": patch}, cwd="/code/repo").opaque
