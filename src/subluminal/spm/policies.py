"""Where the policy of a program comes from: a file, a text, plain data, or a function."""

import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from subluminal.adapters.in_process.guarding.steps import Ask, Steps
from subluminal.clock import now
from subluminal.contracts.bundle import Bundle
from subluminal.contracts.vocabulary import Dialect
from subluminal.core.policies.files import read_policy
from subluminal.errors import InvalidInput, PolicyError
from subluminal.policy.dialects.agent_spm.signing import SigningKey
from subluminal.policy.loading import parse_bundle
from subluminal.policy.terms import Terms
from subluminal.spm.types import PolicyBundle

PolicyLoader = Callable[[], Awaitable[PolicyBundle | str] | PolicyBundle | str]


class Loaded(NamedTuple):
    """A policy that can be used."""

    text: bytes
    """the bundle as it was given"""
    value: dict[str, Any]
    """the same as plain data"""
    bundle: Bundle
    """the same in our language"""


class PolicySource:
    """Loads the policy of a program, as often as it is asked to."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        text: str | None,
        bundle: PolicyBundle | None,
        loader: PolicyLoader | None,
        hmac_key: str | bytes | None,
    ) -> None:
        given = [each for each in (path, text, bundle) if each is not None]
        if len(given) > 1 or not (given or loader):
            raise TypeError(
                "give one of policy_path, policy_json and policy_bundle, or a policy_loader"
            )
        self._path, self._text, self._bundle, self._loader = path, text, bundle, loader
        self._key = hmac_key.encode() if isinstance(hmac_key, str) else hmac_key

    @property
    def is_function(self) -> bool:
        """Whether only a function of the program gives the policy."""
        return self._path is None and self._text is None and self._bundle is None

    def load(self) -> Loaded:
        """Loads the policy from a file, a text or data. Raises PolicyError."""
        if self._path is not None:
            try:
                return self._read(read_policy(os.fspath(self._path)), os.fspath(self._path))
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise PolicyError(
                    f"`{os.fspath(self._path)}` cannot be read: {reason}",
                    hint="check `policy_path`",
                ) from None
        given = self._text if self._text is not None else self._bundle
        assert given is not None
        return self._given(given)

    def loaded(self) -> Steps[Loaded]:
        """Loads the policy, from the function if there is one. Raises also what that raises."""
        if self._loader is None:
            return self.load()
        return self._given((yield Ask(self._loader, ())))

    def _given(self, given: PolicyBundle | str) -> Loaded:
        if isinstance(given, str):
            return self._read(given.encode(), "policy")
        try:
            return self._read(json.dumps(dict(given), allow_nan=False).encode(), "policy")
        except (TypeError, ValueError) as error:
            raise PolicyError(
                f"the policy is not JSON: {error}",
                hint="use text, numbers, booleans, lists and dicts only",
            ) from None

    def _read(self, text: bytes, file: str) -> Loaded:
        key = None if self._key is None else SigningKey(self._key)
        terms = Terms(dialect=Dialect.AGENT_SPM, now_ms=now().wall_ms, key=key)
        try:
            loaded = parse_bundle(text, file, terms=terms)
        except InvalidInput as error:
            raise PolicyError(str(error), hint="check it with `sub policy lint`") from None
        return Loaded(text, loaded.value, loaded.bundle)
