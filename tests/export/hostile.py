"""A run whose every outside text tries to be something else."""

from tests.export.policies import loaded
from tests.export.shims import Shim, ref, would_be

from subluminal.export.ordering import ordered
from subluminal.export.summary import summarise

EVIL = (
    "]]>\x00\x1b[31m</failure><script>alert(1)</script>\n| a | b |\r\n"
    "`code` **bold** [link](http://evil.example) @admin #1 \u202egnp.exe \ud7ff\ufffe & <!--"
)


def run(text=EVIL):
    """Calls that were refused, throttled and observed, named by `text` throughout."""
    shim = Shim("a", server=text)
    shim.start_run(strict="refused", fail_on="warn")
    snapshot = loaded(shim, "known", "quiet", file="/repo/with space/p#1.yaml")
    policy = ref(snapshot.policy_id, snapshot.policy_hash)
    shim.begin(
        1, text, action="BLOCK", rule_id="known", reason_code=text, summary=text, policy=policy
    )
    shim.begin(2, text, action="THROTTLE", rule_id=text, reason_code=text, summary=text)
    shim.begin(3, text, rule_id=text, summary=text, would_be=would_be(rule_id=text))
    shim.begin(4, text, action="BLOCK", severity="critical", reason_code=text, summary=text)
    shim.begin(5, text, reason_code="POLICY_NOT_APPLICABLE", summary=text)
    shim.call(6, "fine", latency_ms=3)
    shim.end_run("FAILED")
    return summarise(ordered([shim]))
