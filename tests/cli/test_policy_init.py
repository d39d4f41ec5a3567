"""`sub policy init`: where the file goes, what is never overwritten, and that no agent writes the user's."""

import json
import os

import pytest

from subluminal.policy.loading import parse_bundle


def test_without_a_file_it_is_the_user_s_policy(sub, own_home):
    ran = sub("policy", "init")
    path = own_home / "policy.yaml"
    assert ran.code == 0, ran.err
    said = f"wrote `{path}`: 6 rules, for the usual names: no tool was recorded yet\n"
    assert ran.out == said
    assert "It applies to every run of this home" in ran.err
    assert path.stat().st_mode & 0o777 == 0o600
    assert sub("policy", "lint", "--strict", str(path)).code == 0


def test_a_file_is_never_overwritten_without_force(sub, own_home, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("mine")
    ran = sub("policy", "init", str(path))
    assert (ran.code, path.read_text()) == (2, "mine")
    assert ran.err == (
        f"error: `{path}` exists already\nhint: `--force` replaces it; `sub policy init -` prints\n"
    )
    assert sub("policy", "init", str(path), "--force").code == 0
    assert path.read_text().startswith("# A first policy")


def test_a_repository_s_policy_gets_its_folder(sub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = sub("policy", "init", ".subluminal/policy.yaml", "--mode", "observe", "--json")
    told = json.loads(ran.out)
    text = (tmp_path / ".subluminal/policy.yaml").read_bytes()
    assert parse_bundle(text, "p.yaml").bundle.mode == "observe"
    assert {key: told[key] for key in ("file", "rules", "tools", "writes")} == {
        "file": ".subluminal/policy.yaml",
        "rules": 6,
        "tools": 0,
        "writes": 0,
    }
    assert (
        json.loads(sub("policy", "compile", told["file"]).out)["policy_hash"] == told["policy_hash"]
    )


def test_a_dash_prints_and_writes_nothing(sub, own_home):
    ran = sub("policy", "init", "-")
    assert ran.out.startswith("# A first policy")
    assert parse_bundle(ran.out.encode(), "p.yaml").bundle.rules
    assert not (own_home / "policy.yaml").exists()
    for option in ("--json", "--force"):
        assert sub("policy", "init", "-", option).code == 2


@pytest.mark.parametrize("name", ["SUB_RUN_ID", "CLAUDECODE", "CODEX_THREAD_ID", "AI_AGENT"])
def test_an_agent_cannot_write_the_user_s_policy(sub, own_home, tmp_path, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    path = own_home / "policy.yaml"
    link = tmp_path / "link.yaml"
    own_home.mkdir(exist_ok=True)
    link.symlink_to(path)
    for words in (
        [],
        ["--force"],
        [str(path)],
        [str(link)],
        [f"{own_home}/../{own_home.name}/policy.yaml"],
    ):
        ran = sub("policy", "init", *words)
        assert ran.code == 2
        assert "`sub policy init` is for a person" in ran.err
        assert not path.exists()
    assert sub("policy", "init", str(tmp_path / "mine.yaml")).code == 0


@pytest.mark.parametrize("kind", ["directory", "pipe", "unwritable"])
def test_what_is_not_a_file_is_left_alone(sub, tmp_path, kind):
    path = tmp_path / "policy.yaml"
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = tmp_path / "file" / "policy.yaml"
        path.parent.write_text("in the way")
    ran = sub("policy", "init", str(path), "--force")
    assert ran.code == 2
    assert f"cannot write `{path}`: " in ran.err
