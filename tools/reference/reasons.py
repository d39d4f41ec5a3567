"""Generates a page for each reason code: what it means, and what to do."""

from tools.field_docs import doc_of, one_line, paragraphs
from tools.reference.markdown import page, table

from subluminal.contracts.vocabulary import ReasonCode


def pages() -> dict[str, str]:
    """Returns the list of reason codes, and a page for each."""
    found = {f"docs/reference/reasons/{code.value}.md": _page(code) for code in ReasonCode}
    return {"docs/reference/reasons.md": _list(), **found}


def _list() -> str:
    rows = [(f"[`{code.value}`](reasons/{code.value}.md)", _parts(code)[0]) for code in ReasonCode]
    return page(
        "Reason codes",
        one_line(ReasonCode.__doc__ or ""),
        table(["reason_code", "meaning"], rows),
    )


def _page(code: ReasonCode) -> str:
    meaning, *advice = _parts(code)
    return page(
        code.value,
        f"**What it means.** {meaning}",
        "**What to do.** " + "\n\n".join(advice),
        "[All reason codes](../reasons.md)",
    )


def _parts(code: ReasonCode) -> list[str]:
    parts = paragraphs(doc_of(ReasonCode, code.name))
    if len(parts) < 2:
        raise ValueError(
            f"ReasonCode.{code.name} needs a docstring of two paragraphs in vocabulary.py: "
            "what it means, and what to do"
        )
    return parts
