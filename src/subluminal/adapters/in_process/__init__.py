"""The in-process door: intents of a Python agent, decided and executed in its own process.

kernel_door   what an agent holds: `execute`, `decide`, `plan`
attempts      asks the pack about one intent: envelope, claim, confirmation, audit records
any_level     finds an intent that has run, at whatever level its run was then
results       what an agent gets back
rollout       the answers of the code that a pack is to replace
installing    checks a pack, watches it, and gives it sinks
executions    which intents have run, so that a retry does not run one twice
"""
