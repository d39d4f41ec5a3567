"""Who acts, and from where (Pack 1.3 and 1.3.1)."""

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.vocabulary import Client, Env


class Workload(Struct, frozen=True, kw_only=True):
    """Where the run lives. Every field is optional; consumers tolerate a missing workload."""

    user: str | UnsetType = UNSET
    """desktop: the local user"""
    repo_path: str | UnsetType = UNSET
    """desktop: the working copy"""
    ci_provider: str | UnsetType = UNSET
    job_id: str | UnsetType = UNSET
    repo: str | UnsetType = UNSET
    branch: str | UnsetType = UNSET
    namespace: str | UnsetType = UNSET
    """Kubernetes"""
    service_account: str | UnsetType = UNSET
    pod: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET


class Source(Struct, frozen=True, kw_only=True):
    """The producer of an event, and the event's place in what that producer wrote."""

    host_id: str
    """stable per machine"""
    proc_id: str
    """stable per process"""
    shim_id: str
    """unique per shim instance"""
    n: int | UnsetType = UNSET
    """additive: counts this shim's events from 1; (shim_id, n) is an event's key (journal-first)"""
    prev: str | UnsetType = UNSET
    """additive: the chain hash up to the event before this one (provable-ledger)"""


class Identity(Struct, frozen=True, kw_only=True):
    """What policy selectors look at."""

    agent_id: str = "unknown"
    client: Client = Client.UNKNOWN
    env: Env = Env.UNKNOWN
    principal: str | None = None
    workload: Workload = Workload()
