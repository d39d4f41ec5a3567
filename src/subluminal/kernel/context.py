"""The runtime context of one tenant: its kill switch, its sinks and its rollout.

There is no switch in any module: a decision depends on its arguments, so a replay under a kill is a
replay. A context is what a process may change while it runs.
"""

from msgspec import Struct

from subluminal.kernel.observing import LearningSink, MetricsSink
from subluminal.kernel.refusals import Kill
from subluminal.kernel.rollout import Rollout


class RuntimeContext(Struct):
    """What belongs to one tenant. All of it is optional."""

    id: str | None = None
    kill: Kill | None = None
    metrics: MetricsSink | None = None
    learning: LearningSink | None = None
    shadow: MetricsSink | None = None
    """gets the differences between the kernel and the old code"""
    rollout: Rollout | None = None

    def set_kill_switch(self, kill: Kill | None) -> None:
        """Pulls the switch, or lets it go."""
        self.kill = kill

    def is_killed(self) -> bool:
        """Whether the switch is pulled."""
        return self.kill is not None
