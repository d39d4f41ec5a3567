"""Generates the pages under docs/reference from the code that they describe."""

from tools.reference import commands, contracts, reasons, scan_rules, settings


def reference_pages() -> dict[str, str]:
    """Returns every page by its path below the repository."""
    pages = {
        **contracts.pages(),
        **reasons.pages(),
        **scan_rules.pages(),
        **settings.pages(),
        **commands.pages(),
    }
    return {"docs/reference/README.md": _index(pages), **pages}


def _index(pages: dict[str, str]) -> str:
    lines = ["# Reference", "", "Generated from the code by `make docs`.", ""]
    for path, text in sorted(pages.items()):
        title = text.partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.removeprefix('docs/reference/')})")
    return "\n".join(lines) + "\n"
