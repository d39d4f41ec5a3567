"""The door for agents' own tools: a client's hooks call `sub hook` before and after each tool call.

    entry           the command line of `sub hook`
    front           one process per event: asks the session's hook shim, and passes its answer on
    starting        starts a hook shim, which one of several fronts wins
    failing         the answer of a front that reaches no hook shim
    wire            what front and hook shim send each other
    shim            the loop of a hook shim, one process per session
    client_process  the client's process, with whose death a hook shim ends
    session         decides events: holds the run and the open calls
    events          an event in no client's terms
    clients/        what the events of each client look like, and which answers it obeys

`entry`, `front` and `wire` are loaded for every event of an agent, and `starting` for the first, so
they import only modules that cost nothing.
"""
