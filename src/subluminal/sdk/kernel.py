"""The product inside a Python agent.

    from subluminal.sdk import open_kernel

    with open_kernel("payments_pix") as kernel:
        done = kernel.execute("pix.charge.refund", payload, state=state, nonce="r-17", handler=pay)

`open_kernel` opens the in-process door for one pack (`adapters.in_process`): the same runs,
policies, stops, approvals and ledger as every other door has.
"""

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial

from subluminal.adapters.in_process.attempts import Judging
from subluminal.adapters.in_process.executions.opening import open_executions
from subluminal.adapters.in_process.installing import Drift, install_pack
from subluminal.adapters.in_process.kernel_door import KernelDoor
from subluminal.adapters.in_process.results import Done
from subluminal.config import env
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.contracts.decision import PolicyRef
from subluminal.core.host import Host
from subluminal.core.intents.confirming import find_confirmation
from subluminal.core.intents.packs import LoadedPack, load_pack, loaded
from subluminal.core.runs.opening import Sharing
from subluminal.errors import NotExecuted
from subluminal.kernel.context import RuntimeContext
from subluminal.kernel.executions import ExecutionLedger
from subluminal.kernel.observing import SinkFailure
from subluminal.kernel.packs import Pack, with_basis_audit
from subluminal.kernel.refusals import told
from subluminal.kernel.rollout import Rollout
from subluminal.wiring import open_host

__all__ = ["Done", "KernelDoor", "NotExecuted", "install_pack", "open_kernel"]


def open_kernel(
    pack: str | Pack,
    *,
    home: str | None = None,
    run_id: str | None = None,
    agent_id: str | None = None,
    principal: str | None = None,
    executions: str | ExecutionLedger | None = None,
    context: RuntimeContext | None = None,
) -> KernelDoor:
    """Opens the in-process door for a pack: the name of an installed one, or a Pack.

    `run_id`, `agent_id` and `principal` go before SUB_RUN_ID, SUB_AGENT_ID and SUB_PRINCIPAL;
    `home` goes before SUB_HOME. Without a run id, this process is a run of its own, and shims that
    it starts share it. `executions` goes before `[kernel] executions` of the settings: such a
    setting, or a ledger. `context` has the rollout and sinks of a tenant; without a rollout in it,
    SUB_KERNEL_SHADOW and SUB_KERNEL_ENFORCE say which intents the pack decides.
    """
    found = load_pack(pack) if isinstance(pack, str) else loaded(pack)
    context = context or RuntimeContext()
    environ = _environ(home=home, agent_id=agent_id, principal=principal)
    where = places(environ)
    settings = load_settings(where.settings)
    ref = PolicyRef(
        policy_id=f"pack:{found.name}",
        policy_version=found.version,
        policy_hash=found.fingerprint,
    )
    host = open_host(
        where,
        environ=environ,
        run_id=run_id,
        settings=settings,
        sharing=Sharing(threads=True),
        client_pid=os.getpid(),
        pack=ref,
    )
    shadow, enforce = env.SUB_KERNEL_SHADOW.name, env.SUB_KERNEL_ENFORCE.name
    rollout = Rollout.from_env(environ, shadow, enforce)
    try:
        kept = _executions(executions, settings.kernel.executions, where)
        return _door(host, found, context, rollout, kept, owns_ledger=kept is not executions)
    except BaseException:
        host.close()
        raise


def _executions(
    given: str | ExecutionLedger | None, setting: str, where: Places
) -> ExecutionLedger | None:
    if given is None or isinstance(given, str):
        return open_executions(given or setting, where)
    return given


def _door(
    host: Host,
    found: LoadedPack,
    context: RuntimeContext,
    rollout: Rollout,
    kept: ExecutionLedger | None,
    *,
    owns_ledger: bool,
) -> KernelDoor:
    shown = host.previewer.safe
    drift = Drift(lambda said: host.health("degraded", detail=shown(said)), context.metrics)
    watched = found._replace(pack=with_basis_audit(found.pack, drift))
    find = partial(find_confirmation, host.places, host.run_id, found.pack.id)
    judging = Judging(watched, host.run_id, context, rollout, kept, find, shown)
    _tell_typos(context.rollout or rollout, found.pack.intents, host, drift)
    close = getattr(kept, "close", None) if owns_ledger else None
    return KernelDoor(host, watched, judging, close or _nothing)


def _tell_typos(rollout: Rollout, intents: Sequence[str], host: Host, drift: Drift) -> None:
    """Records words of the rollout that are nearly an intent of the pack.

    Other words may be intents of other packs: the lists are for all doors of an environment.
    """
    for word in rollout.unknown(intents):
        close = get_close_matches(word, intents, n=1)
        if close:
            host.taint()  # enters the run, which has the record
            said = f"`{told(word)}`: did you mean `{close[0]}`?"
            drift.record_sink_failure(SinkFailure("rollout", "enforce_config_typo", said))


def _nothing() -> None:
    """Closes a ledger that belongs to the caller."""


def _environ(**given: str | None) -> Mapping[str, str]:
    names = {
        "home": env.SUB_HOME.name,
        "agent_id": env.SUB_AGENT_ID.name,
        "principal": env.SUB_PRINCIPAL.name,
    }
    said = {names[key]: value for key, value in given.items() if value is not None}
    return {**os.environ, **said}
