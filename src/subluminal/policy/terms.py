"""What a caller demands of a policy besides that it is valid: its language, age and signature."""

from typing import TYPE_CHECKING, NamedTuple

from subluminal.contracts.vocabulary import Dialect

if TYPE_CHECKING:
    from subluminal.policy.dialects.agent_spm.signing import SigningKey


class Terms(NamedTuple):
    """The demands. By default there are none."""

    dialect: Dialect | None = None
    """language of the policy; None finds it out"""
    now_ms: int | None = None
    """wall clock in milliseconds, if a bundle of Agent-SPM that has expired is refused"""
    key: "SigningKey | None" = None
    """key that bundles of Agent-SPM must be signed with"""
    only_signed: bool = False
    """whether policies that cannot be signed are refused too"""


ANY = Terms()
