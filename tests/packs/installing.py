"""Installs tiny distributions that have packs, as pip would leave them in a site directory."""

import site
import sys
import sysconfig
from pathlib import Path
from textwrap import dedent

import pytest

PACK = """
    from subluminal.kernel import Pack, Plan, PolicyBundle, static_planner, system_taint_policy

    def refuse_all(envelope, state):
        return None

    PACK = Pack(
        id="tiny",
        version="1.0.0",
        intents=["tiny.do"],
        policy=PolicyBundle([], [refuse_all], system_taint_policy([]), [], "REFUSE"),
        planner=static_planner(Plan([], ["tiny.do"])),
        basis_codes=["tiny.no"],
    )
"""


def site_directory(prefix: Path) -> Path:
    """The site directory of a prefix, made."""
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(prefix)}))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def trust(monkeypatch: pytest.MonkeyPatch, prefix: Path) -> Path:
    """Makes the site directory of a prefix one of this Python's. Returns it."""
    folder = site_directory(prefix)
    monkeypatch.setattr(site, "PREFIXES", [*site.PREFIXES, str(prefix)])
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(
    folder: Path,
    name: str,
    entry_points: dict[str, str],
    files: dict[str, str] | None = None,
    *,
    editable: Path | None = None,
) -> None:
    """Puts a distribution into a site directory: its files, and what its metadata says."""
    info = folder / f"{name.replace('-', '_')}-1.0.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    lines = [f"{key} = {value}" for key, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[subluminal.packs]", *lines, ""]))
    if editable is not None:
        url = f'{{"url": "{editable.as_uri()}", "dir_info": {{"editable": true}}}}'
        (info / "direct_url.json").write_text(url)
    for path, text in (files or {}).items():
        write(folder / path, text)


def write(path: Path, text: str) -> None:
    """Writes source text, and lets imports see it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    sys.path_importer_cache.clear()
