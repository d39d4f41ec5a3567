"""One file a rule kind. Each has an Entry: the rule, prepared for one server and tool.

`Entry.visit(visit)` returns a Decision if the rule allows, denies or triggers, else None; it reads
counters and leaves updates on the visit. Nothing is written here.
"""
