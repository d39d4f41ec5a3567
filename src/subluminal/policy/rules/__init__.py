"""One file for each rule kind. Its Entry is a rule prepared for one tool of one server.

`Entry.visit(visit)` returns a Decision if the rule allows or refuses the call, else None. It reads
counters through the visit and leaves updates there; nothing is written here.
"""
