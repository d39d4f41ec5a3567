"""Selectors: whether a policy is about this run at all (Pack 2.2)."""

from typing import Any

from msgspec import UNSET

from subluminal.contracts.identity import Identity


def applies(selectors: dict[str, Any], identity: Identity) -> bool:
    """Fields are ANDed, values ORed; a field that is missing or empty matches all."""
    return (
        _among(selectors["env"], identity.env.value)
        and _among(selectors["agent_id"], identity.agent_id)
        and _among(selectors["client"], identity.client.value)
        and _workload_fits(selectors["workload"], identity)
    )


def _among(wanted: list[str], actual: object) -> bool:
    return not wanted or actual in wanted


def _workload_fits(wanted: dict[str, Any] | None, identity: Identity) -> bool:
    if wanted is None:
        return True
    workload = identity.workload
    labels = {} if workload.labels is UNSET else workload.labels
    return (
        _among(wanted["namespace"], workload.namespace)
        and _among(wanted["service_account"], workload.service_account)
        and _among(wanted["repo"], workload.repo)
        and _among(wanted["branch"], workload.branch)
        and all(labels.get(key) == value for key, value in wanted["labels"].items())
    )
