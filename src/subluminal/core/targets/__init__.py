"""What a tool call touches: the one reader of shell text, paths, URLs and patches in arguments.

source             what the enforcer holds: reads the targets of a call, if a rule asks
reading, table     `targets_of`: a call's arguments to Targets, by a table of tools
line, plain_line   a shell line to its commands, on `tree`, `expansions` and `redirections`
words, globs       one word: quotes, braces, `~`, globs
commands, options  one command: wrappers, shells, interpreters, builtins
git                a git command: settings, aliases, the files that it writes
operands           the paths and hosts that well-known programs take as arguments
programs           the data behind `commands` and `operands`
found, paths, hosts, patches    what was found so far, and how each kind of target is read

Nothing is guessed: what cannot be told makes the call opaque. Import `reading` only if a rule asks
for targets, and `line` only if there is a line to read: the parser is a native library.
"""
