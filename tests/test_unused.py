"""No dead code: every function, class, method and property of the product is used by the product.

Fields of records are not looked at: they are read as JSON. Unused imports are ruff's to find.
"""

from pathlib import Path

import vulture

SOURCE = Path(__file__).parents[1] / "src"
CALLED_BY_OTHERS = {
    "__getattr__": "Python calls it for the lazy names of a package",
    "delegate": "subluminal.Guard is a library: agents call it",
    "capture_signals": "uvicorn.Server calls it",
    "main_loop": "uvicorn.Server calls it",
    "set_kill_switch": "subluminal.kernel is a library: agents call it",
    "from_env": "subluminal.kernel is a library: agents call it",
    "mode_of": "subluminal.kernel is a library: agents call it",
    "GuardMiddleware": "agents with LangChain make it",
    "wrap_tool_call": "LangChain calls it",
    "awrap_tool_call": "LangChain calls it",
    "GuardCapability": "agents with Pydantic AI make it",
    "wrap_tool_execute": "Pydantic AI calls it",
    "get_ordering": "Pydantic AI calls it",
    "get_all_tools": "OpenAI's Agents SDK calls it",
    "render": "a protocol of subluminal.kernel: agents implement and call it",
    "after_decision": "a guard calls it, by its name",
    "init": "subluminal.spm is a library: programs call it",
    "before_check": "a guard calls it, by its name",
    "check_tool_call_sync": "subluminal.spm is a library: programs call it",
    "clear_audit_log": "subluminal.spm is a library: programs call it",
    "get_audit_log": "subluminal.spm is a library: programs call it",
    "get_plugin": "subluminal.spm is a library: programs call it",
    "get_policy_bundle": "subluminal.spm is a library: programs call it",
    "list_by_trust_level": "subluminal.spm is a library: programs call it",
    "list_by_type": "subluminal.spm is a library: programs call it",
    "protect": "subluminal.spm is a library: programs call it",
    "register_plugin": "subluminal.spm is a library: programs call it",
    "reload_policy": "subluminal.spm is a library: programs call it",
    "reload_policy_async": "subluminal.spm is a library: programs call it",
    "revive_all": "subluminal.spm is a library: programs call it",
    "unregister_plugin": "subluminal.spm is a library: programs call it",
    "verify_hash": "subluminal.spm is a library: programs call it",
}


def test_nothing_is_used_by_tests_alone() -> None:
    found = vulture.Vulture()
    found.scavenge([SOURCE])
    unused = [
        f"{item.filename}:{item.first_lineno}: {item.typ} {item.name}"
        for item in found.get_unused_code(min_confidence=60)
        if item.typ in ("function", "class", "method", "property")
        and item.name not in CALLED_BY_OTHERS
    ]
    assert unused == []
