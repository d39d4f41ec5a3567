"""The in-process door: intents of a Python agent, decided and executed in its own process.

kernel_door   what an agent holds: `execute`, `decide`, `plan`
attempts      one intent on its way: envelope, pack, policies, record
results       what became of an intent
rollout       the answers of the code that a pack is to replace
installing    checks a pack, watches it, and gives it sinks
executions    which intents have run, so that a retry does not run one twice
"""
