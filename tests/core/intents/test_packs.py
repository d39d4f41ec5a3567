"""Installed packs: found by entry point, in trusted places only, and known by a fingerprint."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from tests.packs.installing import PACK, install, site_directory, trust, write
from tests.requirements import requirement

from subluminal.core.intents.packs import PackProblem, installed, load_pack, load_reference


@pytest.fixture(autouse=True)
def clean_modules() -> Iterator[None]:
    """No module of one test is left for the next."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0].startswith("tiny_"):
            del sys.modules[name]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted site directory without a distribution."""
    return trust(monkeypatch, tmp_path / "prefix")


@requirement("kernel:installed-packs")
def test_an_installed_pack_is_found_and_loaded_by_name(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_a:PACK"}, {"tiny_a/__init__.py": PACK})
    assert "tiny" in installed()
    assert "tiny_a" not in sys.modules, "a list imports nothing"
    found = load_pack("tiny")
    assert (found.name, found.version, found.pack.id) == ("tiny", "1.0.0", "tiny")
    assert load_pack("tiny") == found


def test_our_own_packs_are_installed() -> None:
    assert {"payments_pix", "shell"} <= set(installed())
    for name in ("payments_pix", "shell"):
        assert load_pack(name).pack.id == name


def test_a_pack_that_is_not_installed_is_said_with_the_nearest_name(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_a:PACK"})
    with pytest.raises(PackProblem, match="pack `tiky` is not installed") as told:
        load_pack("tiky")
    assert told.value.hint == "did you mean `tiny`?"


@requirement("kernel:installed-packs")
def test_two_distributions_with_one_name_are_both_named(here: Path) -> None:
    install(here, "one", {"tiny": "tiny_b:PACK"}, {"tiny_b/__init__.py": PACK})
    install(here, "two", {"tiny": "tiny_b:PACK"})
    with pytest.raises(PackProblem, match="`tiny` is installed by `one` and `two`"):
        load_pack("tiny")
    assert "tiny_b" not in sys.modules


def test_of_a_distribution_that_is_there_twice_the_first_counts(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(here, "Tiny.Dist", {"tiny": "tiny_old:PACK"}, {"tiny_old/__init__.py": PACK})
    nearer = trust(monkeypatch, tmp_path / "nearer")
    install(nearer, "tiny-dist", {"tiny": "tiny_new:PACK"}, {"tiny_new/__init__.py": PACK})
    load_pack("tiny")
    assert "tiny_new" in sys.modules
    assert "tiny_old" not in sys.modules


BROKEN = {
    "import": ("import nowhere_at_all", "does not import: ModuleNotFoundError: No module named"),
    "syntax": ("def (", "does not import: SyntaxError"),
    "raises": ("raise RuntimeError('a\\n\\nb')", "does not import: RuntimeError: a b$"),
    "exits": ("import sys; sys.exit(3)", "does not import: SystemExit: 3$"),
    "no attribute": ("", "does not import: AttributeError"),
    "wrong type": ("PACK = {}", "`tiny_c:PACK` is a `dict`, not a Pack"),
    "class": ("from subluminal.kernel import Pack as PACK", "is a `.*`, not a Pack"),
    "default": (PACK.replace('"REFUSE"', '"EXECUTE"'), "its default is EXECUTE"),
    "no id": (PACK.replace('id="tiny"', 'id=""'), "its id is empty"),
    "no intents": (PACK.replace('intents=["tiny.do"]', "intents=[]"), "its intents are empty"),
    "no guards": (PACK.replace("PolicyBundle([]", "PolicyBundle(7"), "its guards are not lists"),
}


@requirement("kernel:bad-packs")
@pytest.mark.parametrize("fault", BROKEN)
def test_a_pack_that_cannot_be_used_gets_one_sentence(here: Path, fault: str) -> None:
    source, sentence = BROKEN[fault]
    install(here, "tiny-dist", {"tiny": "tiny_c:PACK"}, {"tiny_c/__init__.py": source})
    with pytest.raises(PackProblem, match=f"^pack `tiny`.*{sentence}") as told:
        load_pack("tiny")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("value", ["tiny_d", "tiny_d:", ":PACK", "tiny_d:PACK[extra]", "a b:c"])
def test_an_entry_point_without_an_attribute_is_refused(here: Path, value: str) -> None:
    install(here, "tiny-dist", {"tiny": value})
    with pytest.raises(PackProblem, match="does not name a module and an attribute"):
        load_pack("tiny")


def test_an_entry_point_without_its_module_is_refused(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_gone:PACK", "deep": "tiny_gone.sub:PACK"})
    for name in ("tiny", "deep"):
        with pytest.raises(PackProblem, match="there is no module `tiny_gone`"):
            load_pack(name)


def test_a_list_of_entry_points_that_cannot_be_read_hides_no_other_pack(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_e:PACK"}, {"tiny_e/__init__.py": PACK})
    install(here, "rubbish", {})
    (here / "rubbish-1.0.0.dist-info" / "entry_points.txt").write_text("[subluminal.packs]\nrub\n")
    assert load_pack("tiny").version == "1.0.0"


# Only what is installed


@requirement("kernel:never-a-repository")
@pytest.mark.parametrize("way", ["cwd", "PYTHONPATH"])
def test_a_distribution_in_a_repository_is_not_found(tmp_path: Path, way: str) -> None:
    """Its metadata is found by `python -m` in its directory, and by PYTHONPATH."""
    install(tmp_path, "evil", {"evil": "tiny_evil:PACK"}, {"tiny_evil/__init__.py": PACK})
    code = "from subluminal.core.intents.packs import installed; print(installed())"
    env = dict(os.environ) | ({"PYTHONPATH": str(tmp_path)} if way == "PYTHONPATH" else {})
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("[")
    assert "evil" not in ran.stdout


@requirement("kernel:never-a-repository")
def test_a_module_of_a_repository_does_not_stand_in_for_an_installed_one(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_f.pack:PACK"}, {"tiny_f/pack.py": PACK})
    write(here / "tiny_f/__init__.py", "")
    write(tmp_path / "repository/tiny_f/__init__.py", "raise SystemExit('ran')")
    monkeypatch.syspath_prepend(str(tmp_path / "repository"))
    with pytest.raises(PackProblem, match="not part of `tiny-dist`"):
        load_pack("tiny")


def test_a_part_of_a_namespace_in_a_repository_is_refused(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_ns.pack:PACK"}, {"tiny_ns/pack.py": PACK})
    write(tmp_path / "repository/tiny_ns/pack.py", "raise SystemExit('ran')")
    monkeypatch.syspath_prepend(str(tmp_path / "repository"))
    with pytest.raises(PackProblem, match="not part of `tiny-dist`"):
        load_pack("tiny")


def test_an_editable_distribution_may_lie_in_its_project(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "a project"
    write(project / "src/tiny_g/__init__.py", PACK)
    install(here, "tiny-dist", {"tiny": "tiny_g:PACK"}, editable=project)
    monkeypatch.syspath_prepend(str(project / "src"))
    assert load_pack("tiny").version == "1.0.0"


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"dir_info": 1}', '{"url": 5}'])
def test_rubbish_about_an_origin_trusts_nothing_more(here: Path, tmp_path: Path, text: str) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_h:PACK"}, {"tiny_h/__init__.py": PACK})
    (here / "tiny_dist-1.0.0.dist-info" / "direct_url.json").write_text(text)
    assert load_pack("tiny").version == "1.0.0"


# Fingerprints


def fingerprint_in(prefix: Path, files: dict[str, str], entry: str = "tiny_p.pack:PACK") -> str:
    """The fingerprint of a pack that a Python of its own has installed under a prefix."""
    folder = site_directory(prefix)
    install(folder, "tiny-dist", {"tiny": entry}, files)
    code = f"""
        import site, sys
        site.PREFIXES.append({str(prefix)!r}); sys.path.insert(0, {str(folder)!r})
        from subluminal.core.intents.packs import load_pack
        print(load_pack("tiny").fingerprint)
    """
    words = [sys.executable, "-c", dedent(code)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


FILES = {"tiny_p/__init__.py": "", "tiny_p/pack.py": PACK, "tiny_p/data/limits.json": "[1]"}
CHANGES = {
    "code": {"tiny_p/pack.py": PACK + "    # a comment\n"},
    "another module": {"tiny_p/__init__.py": "X = 1\n"},
    "data": {"tiny_p/data/limits.json": "[2]"},
    "a new file": {"tiny_p/more.py": ""},
    "version": {"tiny_p/pack.py": PACK.replace("1.0.0", "1.0.1")},
}


@requirement("kernel:fingerprint")
def test_a_fingerprint_is_the_same_in_another_place(tmp_path: Path) -> None:
    first = fingerprint_in(tmp_path / "a", FILES)
    assert len(first) == 64
    assert fingerprint_in(tmp_path / "b" / "deeper", dict(reversed(FILES.items()))) == first


@requirement("kernel:fingerprint")
@pytest.mark.parametrize("change", CHANGES)
def test_a_fingerprint_changes_with_the_pack(tmp_path: Path, change: str) -> None:
    before = fingerprint_in(tmp_path / "a", FILES)
    assert fingerprint_in(tmp_path / "b", {**FILES, **CHANGES[change]}) != before


def test_a_fingerprint_does_not_count_compiled_files(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_i:PACK"}, {"tiny_i/__init__.py": PACK})
    before = load_pack("tiny").fingerprint
    write(here / "tiny_i/__pycache__/x.cpython-311.pyc", "compiled")
    write(here / "tiny_i/old.pyc", "compiled")
    assert load_pack("tiny").fingerprint == before


def test_the_fingerprint_of_a_lone_module_covers_that_file(tmp_path: Path) -> None:
    entry, beside = "tiny_q:PACK", {"tiny_other.py": "X = 1"}
    before = fingerprint_in(tmp_path / "a", {"tiny_q.py": PACK}, entry)
    assert fingerprint_in(tmp_path / "b", {"tiny_q.py": PACK, **beside}, entry) == before
    assert fingerprint_in(tmp_path / "c", {"tiny_q.py": PACK + "    #\n"}, entry) != before


@requirement("kernel:changed-pack")
def test_a_pack_that_changes_under_a_process_is_refused(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_j:PACK"}, {"tiny_j/__init__.py": PACK})
    load_pack("tiny")
    write(here / "tiny_j/__init__.py", PACK + "    # later\n")
    with pytest.raises(PackProblem, match="changed after it was loaded"):
        load_pack("tiny")


def test_a_pack_that_changes_while_it_is_loaded_is_refused(here: Path) -> None:
    source = "with open(__file__, 'a') as file:\n    file.write('#')\n" + dedent(PACK)
    install(here, "tiny-dist", {"tiny": "tiny_k:PACK"}, {"tiny_k/__init__.py": source})
    with pytest.raises(PackProblem, match="changed after it was loaded"):
        load_pack("tiny")


def test_a_package_of_too_many_bytes_is_refused(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_l:PACK"}, {"tiny_l/__init__.py": PACK})
    with (here / "tiny_l" / "model.bin").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(PackProblem, match="more than 64 MiB"):
        load_pack("tiny")
    assert "tiny_l" not in sys.modules


def test_a_link_to_nothing_is_no_file(here: Path) -> None:
    install(here, "tiny-dist", {"tiny": "tiny_m:PACK"}, {"tiny_m/__init__.py": PACK})
    (here / "tiny_m" / "loop").symlink_to("loop")
    assert load_pack("tiny").version == "1.0.0"


# References


def test_a_reference_names_a_module_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tiny_r.py", PACK + "    class Held:\n        pack = PACK\n")
    found = load_reference("tiny_r:PACK")
    assert (found.name, found.version) == ("tiny_r:PACK", "1.0.0")
    assert load_reference("tiny_r:Held.pack").fingerprint == found.fingerprint


@pytest.mark.parametrize("text", ["", "a", "a:", "a:b:c", "../a:b", "sys:path", "tiny_s:PACK"])
def test_a_reference_that_is_none_gets_one_sentence(text: str) -> None:
    with pytest.raises(PackProblem):
        load_reference(text)
