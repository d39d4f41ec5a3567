"""What a model may see: the planner decides, the renderer writes it down.

Tools are READ or MUTATING. A model sees READ tools only, and proposes intents for the rest. Wrap
every planner in `safe_plan`: a plan that shows more raises before the model sees it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from subluminal.errors import PlanConformanceError, SubluminalError
from subluminal.kernel.plain import sha256_canonical

if TYPE_CHECKING:
    from subluminal.kernel.packs import Pack


class Plan(Struct, frozen=True, rename="camel"):
    """What a model may see and propose in this turn."""

    visible_read_tools: Sequence[str]
    allowed_intents: Sequence[str]
    forbidden_concepts: Sequence[str] = ()


class CapabilityPlanner(Protocol):
    """Decides what a model may see. Security depends on it."""

    def plan(self, state: Any, context: Any, /) -> Plan:
        """Returns the plan of this turn."""


class ToolClassification(Struct, frozen=True):
    """Every tool is in one of two classes."""

    read_only: frozenset[str] | Sequence[str] = frozenset()
    mutating: frozenset[str] | Sequence[str] = frozenset()

    def __post_init__(self) -> None:
        both = sorted(set(self.read_only) & set(self.mutating))
        if both:
            raise SubluminalError(f"`{both[0]}` is both READ and MUTATING")


class RenderedPrompt(Struct, frozen=True, rename="camel"):
    """What is sent to a model."""

    system_prompt: str
    tool_schemas: Sequence[Any]
    max_tokens: int


class PromptRenderer(Protocol):
    """Writes a plan down for a model. It decides nothing."""

    def render(self, state: Any, context: Any, plan: Plan, /) -> RenderedPrompt:
        """Returns the prompt of this turn."""


class _StaticPlanner:
    """The same plan every time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def plan(self, _state: Any, _context: Any, /) -> Plan:
        return self._plan


class _SafePlanner:
    """A planner whose every plan is checked."""

    def __init__(
        self, planner: CapabilityPlanner, classification: ToolClassification, pack: "Pack | None"
    ) -> None:
        self._planner = planner
        self._classification = classification
        self._pack = pack

    def plan(self, state: Any, context: Any, /) -> Plan:
        made = self._planner.plan(state, context)
        assert_plan_read_only(made, self._classification, self._pack)
        return made


def static_planner(plan: Plan) -> CapabilityPlanner:
    """Makes a planner that always returns this plan."""
    return _StaticPlanner(plan)


def safe_plan(
    planner: CapabilityPlanner, classification: ToolClassification, pack: "Pack | None" = None
) -> CapabilityPlanner:
    """Wraps a planner: a plan that shows more than it may raises PlanConformanceError."""
    return _SafePlanner(planner, classification, pack)


def assert_plan_read_only(
    plan: Plan, classification: ToolClassification, pack: "Pack | None" = None
) -> None:
    """Raises PlanConformanceError if a plan shows a tool that is not READ, or an alien intent."""
    if not isinstance(plan, Plan):
        raise PlanConformanceError(f"the planner returned a `{type(plan).__name__}`, not a Plan")
    known = set(classification.read_only)
    tools = sorted({tool for tool in plan.visible_read_tools if tool not in known})
    intents: list[str] = []
    if pack is not None:
        intents = sorted(set(plan.allowed_intents) - set(pack.intents))
    if tools or intents:
        raise PlanConformanceError(
            "the plan shows what it must not: " + ", ".join([*tools, *intents]),
            mutating_tools_leaked=tuple(tools),
            intents_leaked=tuple(intents),
        )


def filter_read_only(classification: ToolClassification, names: Iterable[str]) -> list[str]:
    """Returns the names that are READ tools, in their order."""
    known = set(classification.read_only)
    return [name for name in names if name in known]


def plan_fingerprint(plan: Plan) -> str:
    """Returns the hash of what a plan allows, by which records and events are matched."""
    return sha256_canonical(
        {
            "visibleReadTools": list(plan.visible_read_tools),
            "allowedIntents": list(plan.allowed_intents),
        }
    )
