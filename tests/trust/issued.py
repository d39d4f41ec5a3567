"""Registrations with the issuers of GitHub, GitLab and Kubernetes, and claims as those write them."""

from typing import Any

from tests.trust.token_factory import JWKS, NOW_S

from subluminal.contracts.agents import Issuer, Registration
from subluminal.contracts.vocabulary import TrustLevel

GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
CLUSTER = "https://kubernetes.default.svc.cluster.local"

TIMES = {"iat": NOW_S - 5, "nbf": NOW_S - 5, "exp": NOW_S + 300}

GITHUB_CLAIMS: dict[str, Any] = {
    "jti": "3b2c",
    "sub": "repo:acme/shop:ref:refs/heads/main",
    "aud": "subluminal",
    "ref": "refs/heads/main",
    "repository": "acme/shop",
    "repository_id": "1234",
    "ref_protected": "true",
    "run_attempt": "1",
    "iss": GITHUB,
    **TIMES,
}
GITLAB_CLAIMS: dict[str, Any] = {
    "namespace_id": "72",
    "project_id": "20",
    "user_identities": [{"provider": "github", "extern_uid": "2435223452345"}],
    "ref_protected": "true",
    "sub": "project_path:acme/shop:ref_type:branch:ref:main",
    "aud": "subluminal",
    "iss": GITLAB,
    **TIMES,
}
POD_CLAIMS: dict[str, Any] = {
    "aud": ["https://kubernetes.default.svc", "subluminal"],
    "iss": CLUSTER,
    "kubernetes.io": {
        "namespace": "agents",
        "node": {"name": "n1", "uid": "u1"},
        "pod": {"name": "fixer-0", "uid": "u2"},
        "serviceaccount": {"name": "fixer", "uid": "u3"},
    },
    "sub": "system:serviceaccount:agents:fixer",
    **TIMES,
}


def registration(*issuers: Issuer, **changes: Any) -> Registration:
    """Returns an agent that is trusted far once it has proven itself."""
    fields: dict[str, Any] = {
        "agent_id": "fixer",
        "name": "Fixer",
        "owner": "platform",
        "environment": "ci",
        "agent_type": "pr_agent",
        "trust_level": TrustLevel.PRIVILEGED,
        "roles": ["deployer"],
        "issuers": list(issuers),
        "registered_at": "2026-01-01T00:00:00.000Z",
        "registered_by": "kim",
    }
    return Registration(**{**fields, **changes})


def issuer(name: str, subject: str, **more: Any) -> Issuer:
    return Issuer(issuer=name, subject=subject, **{"jwks": JWKS, **more})


FIXER = registration(
    issuer(GITHUB, "repo:acme/shop:ref:refs/heads/*", claims={"/repository_id": "1234"}),
    issuer(GITLAB, "project_path:acme/shop:*", claims={"/user_identities/0/provider": "github"}),
    issuer(
        CLUSTER,
        "system:serviceaccount:agents:fixer",
        claims={"/kubernetes.io/namespace": "agents", "/kubernetes.io/pod/name": "fixer-0"},
    ),
)
