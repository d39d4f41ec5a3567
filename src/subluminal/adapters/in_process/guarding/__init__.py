"""The door of agents that are written in Python: every guarded function is a tool call of the run.

guard       what a program holds: `tool`, `call`, `check`, `run`
calls       one guarded call, from its decision to its end
functions   guarded functions, coroutines and generators
signatures  wrappers with the signature of the function that they guard
arguments   the arguments of a call: bound to their names, in a JSON form
shown       results, as far as a preview shows them
touched     what a program says about the targets of its tools
refused     what a refused call raises
care        plugins and waits around the decision of a call
plugins     plugins of the program: one more layer
waiting     waits for a person's answer, or for a rate limit
asking      asks a function of the program whether a call may pass
reports     tells the program about errors
steps       work that both functions and coroutines do
scopes      runs that a program opens and closes itself
exits       guards that are left open when the interpreter ends
"""
