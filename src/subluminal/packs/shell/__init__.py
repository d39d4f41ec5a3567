"""The pack `shell`: command lines, and files that are written or deleted.

    terminal.run  {command, args?, cwd?}   state {allowlist, allowedCwds, maintenanceActive,
                                                  onUnlisted: refuse|confirm}
    file.write    {path}                   state {roots, protected}
    file.delete   {path}

Optional `sessions` in the state lists the sessions that may propose anything at all.

lines       a payload to what a shell makes of it: the one reader of shell text (core/targets)
risks       lines that are refused or confirmed, whatever is listed
secrets     files that hold credentials
listing     whether a line runs listed programs only, and nothing else
terminal    the guards of `terminal.run`
files       the guards of `file.write` and `file.delete`

No guard looks at the machine: links, aliases and what a program does are not known here. A listed
program that runs the project's own code, such as `make` or `npm`, runs whatever the project has.
"""

from subluminal import __version__
from subluminal.kernel import (
    DecisionKind,
    Pack,
    Plan,
    PolicyBundle,
    static_planner,
    system_taint_policy,
)
from subluminal.packs.shell import files, terminal

_INTENTS = (terminal.RUN, *files.KINDS)

PACK = Pack(
    id="shell",
    version=__version__,
    intents=_INTENTS,
    policy=PolicyBundle(
        state_guards=(*terminal.STATE_GUARDS, *files.STATE_GUARDS),
        auth_guards=(terminal.check_session,),
        taint=system_taint_policy(()),
        business=(*terminal.BUSINESS, *files.BUSINESS),
        default=DecisionKind.REFUSE.value,
    ),
    planner=static_planner(Plan([], list(_INTENTS))),
    basis_codes=(*terminal.CODES, *files.CODES),
    signals=(terminal.MAINTENANCE_SIGNAL,),
)
