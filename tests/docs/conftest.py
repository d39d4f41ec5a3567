"""The `sub` of the command tests, for the examples in the documentation."""

from tests.cli.conftest import sub

__all__ = ["sub"]
