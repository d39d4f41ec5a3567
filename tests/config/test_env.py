"""The table of environment variables."""

from subluminal.config import env
from subluminal.config.env import IDENTITY_VARIABLES, VARIABLES, Variable


def test_every_variable_is_in_the_table_once_and_documented() -> None:
    declared = [value for value in vars(env).values() if isinstance(value, Variable)]
    assert len(declared) == len(VARIABLES)
    assert set(declared) == set(VARIABLES)
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES)
    assert all(variable.doc.endswith(".") for variable in VARIABLES)
    assert set(IDENTITY_VARIABLES) <= set(VARIABLES)
