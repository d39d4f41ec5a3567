"""The identity of a run: agent, client, environment, workload, and the shim that records it
(Pack 1.3 and 1.3.1)."""

from msgspec import UNSET, Struct, UnsetType

from subluminal.contracts.vocabulary import Client, Env, EnvSource


class Workload(Struct, frozen=True, kw_only=True):
    """Where the run takes place. Every field is optional, and so is the workload itself."""

    user: str | UnsetType = UNSET
    """on a desktop: local user"""
    repo_path: str | UnsetType = UNSET
    """on a desktop: path of the working copy"""
    ci_provider: str | UnsetType = UNSET
    """in CI: name of the CI system"""
    job_id: str | UnsetType = UNSET
    """in CI: id of the job"""
    repo: str | UnsetType = UNSET
    """name of the repository"""
    branch: str | UnsetType = UNSET
    """name of the branch"""
    namespace: str | UnsetType = UNSET
    """in Kubernetes: namespace of the pod"""
    service_account: str | UnsetType = UNSET
    """in Kubernetes: service account of the pod"""
    pod: str | UnsetType = UNSET
    """in Kubernetes: name of the pod"""
    labels: dict[str, str] | UnsetType = UNSET
    """labels of the workload"""


class Source(Struct, frozen=True, kw_only=True):
    """The producer of an event, and the event's position among the events of that producer."""

    host_id: str
    """id of the machine, stable"""
    proc_id: str
    """id of the process, stable while it runs"""
    shim_id: str
    """id of the shim, unique for each start"""
    n: int | UnsetType = UNSET
    """additive: number of the event among those of its shim, from 1; (shim_id, n) is unique"""
    prev: str | UnsetType = UNSET
    """additive: chain hash of all earlier events of the shim, in hex; in its first event, a seal of
    the home that the shim runs in"""
    seal: str | UnsetType = UNSET
    """additive: HMAC-SHA256 of the event without it under a key of the home, in hex; only in events
    that are not part of a call"""


class Identity(Struct, frozen=True, kw_only=True):
    """The identity of a run, which a policy's selectors compare."""

    agent_id: str = "unknown"
    """name of the agent"""
    client: Client = Client.UNKNOWN
    """agent client that started the run"""
    env: Env = Env.UNKNOWN
    """environment of the run"""
    environment: str = ""
    """environment as it was given, in any words; empty if it was found out, and `env` says all"""
    env_source: EnvSource | None = None
    """how the environment was found out; None if it is not known"""
    principal: str | None = None
    """person or service on whose behalf the run acts"""
    workload: Workload = Workload()
    """where the run takes place"""
