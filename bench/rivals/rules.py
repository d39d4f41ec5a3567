"""The rules that all engines get: refusals by glob, by regex and by arguments, then allow.

A rule has a pattern for the tool and perhaps one for an argument. However many rules there are,
four of them match the tool of the measured call, and none of them refuses it.
"""

from typing import Any, NamedTuple

NOUNS = ["branch", "table", "bucket", "volume", "secret", "queue", "index", "role", "policy", "vm"]
ARGS: dict[str, Any] = {
    "owner": "acme",
    "repo": "widgets",
    "title": "Fix the flaky retry in the uploader",
    "labels": ["bug", "p2"],
    "visibility": "private",
    "limit": 50,
    "draft": False,
}
SERVER, TOOL = "github", "create_issue"
DENIED_TOOL = "delete_branch_0_now"


class Refusal(NamedTuple):
    """One deny rule, in no engine's syntax."""

    name: str
    glob: str = ""
    regex: str = ""
    """regular expression; `glob_of_regex` is the equivalent for engines without regexes"""
    glob_of_regex: str = ""
    key: str = ""
    equals: str | None = None
    at_least: int | None = None


def refusals(number: int) -> list[Refusal]:
    """Returns rules: a third by glob, a third by regex, a third by arguments."""
    met = [
        Refusal("met-0", glob="create_*", key="visibility", equals="public"),
        Refusal("met-1", glob="*_issue", key="limit", at_least=1_000),
        Refusal("met-2", glob="create_issue", key="owner", equals="torvalds"),
        Refusal("met-3", glob="create_*", key="repo", equals="secrets"),
    ]
    return met + [_other(index) for index in range(number - len(met))]


def _other(index: int) -> Refusal:
    noun = f"{NOUNS[index % len(NOUNS)]}_{index}"
    match index % 3:
        case 0:
            return Refusal(f"glob-{index}", glob=f"delete_{noun}*")
        case 1:
            return Refusal(
                f"regex-{index}",
                regex=f"^(drop|truncate)_{noun}(_cascade)?$",
                glob_of_regex=f"drop_{noun}*",
            )
    return Refusal(f"args-{index}", glob=f"update_{noun}*", key="visibility", equals="public")
