"""Policies: text -> bundle -> snapshot -> evaluation (Pack section 2; rule-evaluation).

text/, loading, checking        a file to a bundle, with every mistake at its line and column
compiling, snapshot             a bundle to a snapshot, which shims load and decide by
evaluation, program, tool_rules, rules/ (one file for each kind)    a call to a decision
lint/, diff/, replay/, explaining, promoting, casefile, case_running    what people ask of a policy

Pure: no I/O, no clock, no logging. Text, time and counters are arguments.
Import the module that you need: the shim must not load the YAML parser.
"""
