"""Loads a bundle from text (Pack 2.1), or reports every problem with its line and column.

A bundle is loaded whole or not at all. In YAML, the fields of `contracts.short_forms` may be left
out; JSON is complete. A bundle of Agent-SPM is recognised by its members, and converted. Pure: the
caller reads the file.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.bundle import AnyRule, Bundle
from subluminal.contracts.shape import Misfit, Path, misfits
from subluminal.contracts.short_forms import completed, fields_with_default
from subluminal.contracts.vocabulary import Dialect
from subluminal.errors import InvalidInput, Problem
from subluminal.policy.checking import rule_misfits, semantic_misfits
from subluminal.policy.dialects.agent_spm.shape import MAX_BYTES, is_agent_spm, is_of_the_pack
from subluminal.policy.packs import FindPack, no_packs, with_versions
from subluminal.policy.terms import ANY, Terms
from subluminal.policy.text.places import Node, Title, problem_of
from subluminal.policy.text.reading import read_document
from subluminal.policy.text.yaml_nodes import MAX_PROBLEMS

MAX_FIELDS = 2_000
"""Most fields of one mapping. No mapping of a bundle has twenty."""

_MAY_BE_SHORT = frozenset(f"missing field `{name}`" for name in fields_with_default())


class LoadedBundle(NamedTuple):
    """A valid bundle, and the places of its parts in the file."""

    bundle: Bundle
    """the bundle; its `kernel` rules name version and fingerprint of their packs"""
    value: Any
    """the bundle as plain data, as it is written"""
    node: Node
    """places of the values"""
    file: str
    """name of the file"""
    dialect: Dialect = Dialect.PACK
    """language that the file is written in"""
    warnings: tuple[Misfit, ...] = ()
    """what the conversion from another language noticed"""

    def in_its_words(self, misfit: Misfit) -> Misfit:
        """Returns a misfit of `bundle` as a misfit of the file, if that has another language."""
        if self.dialect is Dialect.PACK:
            return misfit
        from subluminal.policy.dialects.agent_spm.conversion import written_path

        return written_path(misfit, len(self.value["rules"]))

    def line_of(self, index: int) -> int:
        """Returns the line of a rule of `bundle`; 0 if it is not known."""
        return self.node.find(self.in_its_words(Misfit(("rules", index), "")).path).line


def parse_bundle(
    data: bytes, file: str, find_pack: FindPack = no_packs, terms: Terms = ANY
) -> LoadedBundle:
    """Loads a bundle from YAML or JSON text. Raises InvalidInput with every problem."""
    document, problems = read_document(data, file)
    if len(data) > MAX_BYTES and _dialect_of(document.value, terms) is Dialect.AGENT_SPM:
        raise InvalidInput([Problem(f"larger than {MAX_BYTES} bytes", file)])
    return bundle_in(
        *(document.value, document.node, file, problems, find_pack),
        is_short=not document.is_json,
        terms=terms,
    )


def bundle_in(
    value: Any,
    node: Node,
    file: str,
    problems: Sequence[Problem] = (),
    find_pack: FindPack = no_packs,
    *,
    is_short: bool = True,
    terms: Terms = ANY,
) -> LoadedBundle:
    """Loads a bundle from plain data, such as the bundle inside a case.

    `problems` are those of the text. `find_pack` finds the packs of `kernel` rules. If `is_short`,
    fields may be left out. Raises InvalidInput with every problem.
    """
    if _dialect_of(value, terms) is Dialect.AGENT_SPM:
        return _agent_spm(value, node, file, problems, terms)
    if terms.only_signed:
        raise not_signable(file)
    full = completed(value) if is_short else value
    try:
        bundle = msgspec.convert(full, Bundle)
    except msgspec.ValidationError:
        found = _shape_misfits(full, find_pack)
        if not is_short:
            found = [_with_advice(misfit) for misfit in found]
    else:
        found = semantic_misfits(bundle, find_pack)
        if not found and not problems:
            return LoadedBundle(with_versions(bundle, find_pack), value, node, file)
    raise _invalid(found, value, node, file, problems)


def _agent_spm(
    value: Any, node: Node, file: str, problems: Sequence[Problem], terms: Terms
) -> LoadedBundle:
    from subluminal.policy.dialects.agent_spm.reading import read

    if is_of_the_pack(value):
        hint = "it has a `policy_id`, as policies in the Pack's language do"
        raise InvalidInput([Problem("the file is not a bundle of Agent-SPM", file, hint=hint)])
    reading = read(value, terms)
    if reading.bundle is None or problems:
        raise _invalid(reading.misfits, value, node, file, problems)
    return LoadedBundle(
        reading.bundle, value, node, file, Dialect.AGENT_SPM, tuple(reading.warnings)
    )


def _dialect_of(value: Any, terms: Terms) -> Dialect:
    if terms.dialect is not None:
        return terms.dialect
    return Dialect.AGENT_SPM if is_agent_spm(value) else Dialect.PACK


def not_signable(file: str) -> InvalidInput:
    """Returns the error for a policy that must be signed, in a language that has no signatures."""
    from subluminal.policy.dialects.agent_spm.signing import NOT_SIGNED

    # Shims and `sub run` show only the message, so the reason is in it.
    told = f"{NOT_SIGNED}: only bundles of Agent-SPM can be signed"
    return InvalidInput([Problem(told, file, hint="leave the key out for other policies")])


def _invalid(
    found: list[Misfit], value: Any, node: Node, file: str, problems: Sequence[Problem]
) -> InvalidInput:
    title = rule_title(value)
    told = [problem_of(misfit, node, file, title) for misfit in found[:MAX_PROBLEMS]]
    # A place with a problem in its text is not reported again as a value of the wrong type.
    places = {(problem.line, problem.column) for problem in problems}
    told = [*problems, *(each for each in told if (each.line, each.column) not in places)]
    return InvalidInput(sorted(told, key=lambda each: (each.line, each.column)))


def _with_advice(misfit: Misfit) -> Misfit:
    """Says why a field that YAML may leave out is missing in JSON."""
    if misfit.hint is None and misfit.message in _MAY_BE_SHORT:
        return misfit._replace(hint="a bundle in JSON is complete; in YAML the field has a default")
    return misfit


def _shape_misfits(value: Any, find_pack: FindPack) -> list[Misfit]:
    """Finds the misfits of a value that is not a bundle: first the head, then rule by rule."""
    wide = next(_too_wide(value, ()), None)
    if wide is not None:
        return [wide]
    rules = value.get("rules") if isinstance(value, dict) else None
    if not isinstance(rules, list):
        return misfits(value, Bundle)
    found = misfits({**value, "rules": []}, Bundle)
    for index, rule in enumerate(rules):
        # Stop early: a file with this many problems is probably not a policy at all.
        if len(found) >= MAX_PROBLEMS:
            break
        found += _rule_misfits(rule, index, find_pack)
    return found


def _rule_misfits(rule: Any, index: int, find_pack: FindPack) -> list[Misfit]:
    try:
        return rule_misfits(msgspec.convert(rule, AnyRule), index, find_pack)
    except msgspec.ValidationError:
        found = misfits(rule, AnyRule)
    return [misfit._replace(path=("rules", index, *misfit.path)) for misfit in found]


def _too_wide(value: Any, path: Path) -> Iterator[Misfit]:
    """Finds mappings with too many fields. Each unknown field costs a search for a similar name."""
    if isinstance(value, dict) and len(value) > MAX_FIELDS:
        yield Misfit(path, f"has {len(value)} fields; the most is {MAX_FIELDS}")
    elif isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _too_wide(item, (*path, key))


def rule_title(value: Any) -> Title:
    """Returns a function that names a rule in a path: by its id, else by its number."""

    def title(path: Path) -> tuple[str, Path]:
        if len(path) < 2 or path[0] != "rules":
            return "", path
        rule = value["rules"][path[1]]
        rule_id = rule.get("rule_id", rule.get("id")) if isinstance(rule, dict) else None
        if isinstance(rule_id, str) and rule_id:
            return f"rule `{rule_id[:60]}`: ", path[2:]
        return f"rule {int(path[1]) + 1}: ", path[2:]

    return title
