"""Which files are policies of a run, and who must own them (policy-layers)."""

import os
from pathlib import Path

import pytest

from subluminal.config.places import places
from subluminal.contracts.vocabulary import Layer
from subluminal.core.policies.files import policy_files, read_policy, repository_policy, stamp_of


def put(directory: Path) -> Path:
    path = directory / ".subluminal" / "policy.yaml"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_the_nearest_up_to_the_repository_s_root(tmp_path: Path) -> None:
    where = places({"SUB_HOME": str(tmp_path / "home")})
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    below = root / "a" / "b"
    below.mkdir(parents=True)
    outside = put(tmp_path)
    assert repository_policy(where, str(below)) is None, "not beyond the root"
    at_root = put(root)
    assert repository_policy(where, str(below)) == str(at_root)
    nearer = put(root / "a")
    assert repository_policy(where, str(below)) == str(nearer)
    assert repository_policy(where, str(tmp_path)) == str(outside)


def test_layers_in_order(tmp_path: Path) -> None:
    where = places({"SUB_HOME": str(tmp_path / "home")})
    (tmp_path / ".git").mkdir()
    found = put(tmp_path)
    assert policy_files(where, str(tmp_path), None) == [
        (Layer.USER, where.policy, False),
        (Layer.REPOSITORY, str(found), False),
    ]
    assert policy_files(where, str(tmp_path), "x.yaml") == [
        (Layer.USER, where.policy, False),
        (Layer.REPOSITORY, str(tmp_path / "x.yaml"), True),
    ]


def test_a_stranger_s_policy_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = places({"SUB_HOME": str(tmp_path / "home")})
    (tmp_path / ".git").mkdir()
    path = put(tmp_path)
    owner = os.stat(path).st_uid
    if owner == 0:
        os.chown(path, 12345, -1)
        owner = 12345
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert repository_policy(where, str(tmp_path)) is None
    monkeypatch.setattr(os, "getuid", lambda: owner)
    assert repository_policy(where, str(tmp_path)) == str(path)


def test_a_stamp_tells_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "p"
    assert stamp_of(str(path)) is None
    path.write_text("a")
    before = stamp_of(str(path))
    assert before == stamp_of(str(path))
    other = tmp_path / "q"
    other.write_text("b")
    os.utime(other, ns=(0, path.stat().st_mtime_ns))
    other.replace(path)
    assert stamp_of(str(path)) != before


def test_only_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_policy(str(tmp_path / "pipe"))
    with pytest.raises(OSError, match=r"not a file|s a directory"):
        read_policy(str(tmp_path))
