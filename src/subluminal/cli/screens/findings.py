"""The findings of a proof, one line each, for the commands that verify."""

from collections.abc import Iterable, Mapping

from subluminal.cli.output import Output, shown


def tell_findings(findings: Iterable[Mapping[str, str]], out: Output) -> None:
    """Prints what is wrong: where, and what."""
    for finding in findings:
        out.line(shown(f"{finding['table']}: {finding['row']}: {finding['message']}"))
