"""Every requirement has a test of what the program emits, and a mutant that this test must kill.

Claims are read from the source text, so that a test counts even if it was not collected. Whether
the mutants are killed is for `make mutate`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.requirements import REQUIREMENTS, requirement
from tools.mutate import PRODUCT, Mutant, apply, load_mutants

TESTS = Path(__file__).parent
FILES = sorted(TESTS.rglob("test_*.py"))
PROMISED = {id_ for id_, entry in REQUIREMENTS.items() if not entry.deferred}
MUTANTS = load_mutants()


def claims(nodes: list[ast.expr]) -> Iterator[str]:
    """Yields the ids in `@requirement(...)` decorators, or in the value of `pytestmark`."""
    for outer in nodes:
        for node in ast.walk(outer):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "requirement":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), ast.dump(argument)
                    yield str(argument.value)


def marked_tests(file: Path) -> Iterator[tuple[str, set[str]]]:
    """Yields every test function of a file, with the ids that it, its class or its module claims."""
    yield from _tests_in(ast.parse(file.read_text("utf-8")), file.stem, set())


def _tests_in(
    node: ast.Module | ast.ClassDef, name: str, inherited: set[str]
) -> Iterator[tuple[str, set[str]]]:
    inherited = inherited | set(claims(_pytestmarks(node)))
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            own = inherited | set(claims(child.decorator_list))
            yield from _tests_in(child, f"{name}::{child.name}", own)
        elif isinstance(child, ast.FunctionDef) and child.name.startswith("test_"):
            yield f"{name}::{child.name}", inherited | set(claims(child.decorator_list))


def _pytestmarks(node: ast.Module | ast.ClassDef) -> list[ast.expr]:
    return [
        child.value
        for child in node.body
        if isinstance(child, ast.Assign) and getattr(child.targets[0], "id", "") == "pytestmark"
    ]


def claimed(files: list[Path] = FILES) -> set[str]:
    return {id_ for file in files for _, ids in marked_tests(file) for id_ in ids}


def test_every_requirement_has_a_test_or_is_deferred_by_name() -> None:
    untested = sorted(PROMISED - claimed())
    assert untested == [], "mark a test with @requirement, or name the part that will deliver it"


def test_what_the_seeds_require_is_tested_where_the_program_emits_it() -> None:
    """tests/contracts looks at structs: the program may not use them as they are."""
    emitting = [file for file in FILES if file.parent != TESTS / "contracts"]
    of_the_seeds = {id_ for id_ in PROMISED if not id_.startswith("house:")}
    assert sorted(of_the_seeds - claimed(emitting)) == []


def test_every_requirement_has_a_mutant() -> None:
    broken = {mutant.requirement for mutant in MUTANTS}
    assert sorted(PROMISED - broken) == [], "add an entry to tests/mutants.toml"
    assert sorted(broken - PROMISED) == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_is_python_and_breaks_one_place(mutant: Mutant, tmp_path: Path) -> None:
    copy = tmp_path / PRODUCT / mutant.file
    copy.parent.mkdir(parents=True)
    copy.write_text((TESTS.parent / PRODUCT / mutant.file).read_text("utf-8"), "utf-8")
    before = apply(mutant, tmp_path)
    assert copy.read_text("utf-8") != before
    if copy.suffix == ".py":
        compile(copy.read_text("utf-8"), mutant.file, "exec")


def test_nothing_delivered_is_still_called_deferred() -> None:
    deferred = {id_ for id_, entry in REQUIREMENTS.items() if entry.deferred}
    delivered = sorted(deferred & claimed())
    assert delivered == [], "remove `deferred` from these entries: they have tests now"


def test_every_claim_names_an_entry() -> None:
    assert sorted(claimed() - set(REQUIREMENTS)) == []


@pytest.mark.parametrize(
    "file", sorted((TESTS / "contracts").glob("test_*.py")), ids=lambda file: file.stem
)
def test_every_contract_test_has_an_entry(file: Path) -> None:
    assert not [name for name, ids in marked_tests(file) if not ids]


def test_an_unknown_id_is_refused_where_it_is_written() -> None:
    with pytest.raises(KeyError, match="not in tests/requirements"):
        requirement("9.9:nothing")
