"""Anthropic's tool runner: tools that cannot be guarded."""

from billing import POLICY

from subluminal import Guard
from subluminal.integrations.anthropic import guarded


def unguardable() -> None:
    """Tools of Anthropic's servers pass; an unknown one is an error."""
    server_tool = {"type": "web_search_20250305", "name": "web_search"}
    with Guard(policy=POLICY) as guard:
        assert guarded([server_tool], guard) == [server_tool]
        try:
            guarded([object()], guard)
        except TypeError as error:
            print(error)
