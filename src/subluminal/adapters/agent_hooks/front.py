"""One event of a client: passes it to the session's hook shim, and passes the answer back.

A client starts one such process for every event, and waits for it. Deciding the event here would
mean loading the core each time, so a hook shim, which has it loaded, does that. Whatever goes
wrong, the client gets an answer that it understands before its own time limit (`failing`).
"""

import os
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

from subluminal.adapters.agent_hooks.wire import (
    MAX_HEADER_BYTES,
    UNDECIDED,
    Answer,
    Header,
    decode_answer,
    encode_header,
)
from subluminal.config.places import encode_name, home_problem, places, working_directory
from subluminal.system.plain_signals import posix
from subluminal.system.sockets import MAX_ADDRESS_BYTES, ShortAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.adapters.agent_hooks.entry import Options, Tools
    from subluminal.config.places import Places

MIN_TIMEOUT_MS = 1_000
"""Smallest `[hooks] timeout_ms`. A front that takes longer reads the setting, which costs time."""

MAX_EVENT_BYTES = 64 << 20
"""Largest event that is read. A client's longest answers are cut off long before that."""

MAX_REQUEST_BYTES = MAX_EVENT_BYTES + 2 * MAX_HEADER_BYTES
"""Largest request that a hook shim reads."""

_CHUNK_BYTES = 1 << 20
_TRIES = 4
"""How often an event is sent again, because the hook shim was killed before it answered."""
_SESSION_KEYS = {"copilot": b'"sessionId"'}
"""The members that name the session; `session_id` in the events of other clients."""
_MAX_SESSION_BYTES = 200
REFUSED = 2
"""The exit code that every client but opencode takes for a refusal."""


class Unreachable(Exception):
    """No hook shim answers. The message is a sentence for a person."""


def handle(options: "Options", tools: "Tools") -> int:
    """Handles the event on stdin; returns the exit code for the client."""
    event = b""
    try:
        try:
            _set_alarm(options)
            event = _stdin()
            answer = _ask(options, event, tools)
        finally:
            # Within the outer `try`: the alarm may ring just before this.
            posix.setitimer(posix.ITIMER_REAL, 0)
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001 - the client gets an answer
        posix.signal(posix.SIGINT, posix.SIG_IGN)
        from subluminal.adapters.agent_hooks.failing import answer_without_shim

        answer = answer_without_shim(options, event, problem)
    if _write(1, answer.stdout):
        _write(2, answer.stderr)
        return answer.code
    # A refusal that did not arrive must not be taken for a yes; two clients need a text for that.
    _write(2, b"Blocked: the refusal of this call could not be written to stdout.\n")
    return REFUSED


def _ask(options: "Options", event: bytes, tools: "Tools") -> Answer:
    where = places(os.environ, options.values.get("--home"))
    problem = home_problem(where)
    if problem is not None:
        raise Unreachable(f"{problem[0]}; {problem[1]}")
    request = encode_header(Header(options.client, options.event, working_directory())) + event
    name = _session_name(where, options, event)
    for _ in range(_TRIES):
        answer = decode_answer(_exchanged(_connected(where, name, options, tools), request))
        if answer is not None and answer.code == UNDECIDED:
            raise Unreachable(answer.stderr.decode("utf-8", "replace"))
        if answer is not None:
            return answer
    raise Unreachable("the hook shim was ended several times before it could answer")


def _connected(where: "Places", name: str, options: "Options", tools: "Tools") -> socket:
    """Connects to the session's hook shim; starts it first if there is none."""
    started = None
    while True:
        line = socket(AF_UNIX, SOCK_STREAM)
        try:
            with ShortAddress(socket_path(where, name)) as address:
                line.connect(address)
            return line
        except (FileNotFoundError, ConnectionRefusedError):
            line.close()
        if started is None:
            from subluminal.adapters.agent_hooks.starting import Starting

            started = Starting(options, tools)
        where = started.start(where, name)


def socket_path(where: "Places", name: str) -> str:
    """Returns the path of a session's socket."""
    return os.path.join(where.state, "hooks", f"{name}.sock")


def _exchanged(line: socket, request: bytes) -> bytes:
    """Sends a request and returns what comes back: nothing if the hook shim is killed."""
    try:
        line.sendall(request)
        line.shutdown(SHUT_WR)
        answer = b""
        while piece := line.recv(65_536):
            answer += piece
    except (BrokenPipeError, ConnectionResetError):
        return b""
    finally:
        line.close()
    return answer


def _session_name(where: "Places", options: "Options", event: bytes) -> str:
    """Returns a file name for the session of an event.

    It is read without parsing the event, which the hook shim does. An event that goes to the wrong
    hook shim, because a tool's argument looks like a session id, is recorded in its own run anyway.
    A hook shim holds one policy, so a hook that names another one gets another hook shim.
    """
    _, _, rest = event.partition(_SESSION_KEYS.get(options.client, b'"session_id"'))
    value = rest[: _MAX_SESSION_BYTES + 8].lstrip(b" \t\r\n:")
    session = value[1:].partition(b'"')[0] if value[:1] == b'"' else b""
    named = session.decode("utf-8", "replace") or str(os.getppid())
    policy = options.policy
    name = encode_name(f"{options.client}-{named}" + (f"\0{policy}" if policy else ""))
    if len(os.fsencode(socket_path(where, name))) <= MAX_ADDRESS_BYTES:
        return name
    try:
        from _blake2 import blake2b  # `hashlib` takes ten times as long
    except ImportError:
        from hashlib import blake2b
    return f"{options.client}-{blake2b(name.encode(), digest_size=12).hexdigest()}"


def _stdin() -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(0, _CHUNK_BYTES):
        size += len(piece)
        if size > MAX_EVENT_BYTES:
            raise Unreachable(f"the client's event is larger than {MAX_EVENT_BYTES} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _set_alarm(options: "Options") -> None:
    """Makes sure that this process answers in time, whatever it is waiting for."""
    waited_ms = MIN_TIMEOUT_MS

    def alarm(_signum: int, _frame: object) -> None:
        nonlocal waited_ms
        from subluminal.adapters.agent_hooks.failing import timeout_ms

        left_ms = timeout_ms(options) - waited_ms
        if left_ms <= 0:
            raise Unreachable(f"the hook shim did not answer within {waited_ms} ms")
        waited_ms += left_ms
        posix.setitimer(posix.ITIMER_REAL, left_ms / 1000)

    posix.signal(posix.SIGALRM, alarm)
    posix.setitimer(posix.ITIMER_REAL, MIN_TIMEOUT_MS / 1000)


def _write(fd: int, data: bytes) -> bool:
    """Writes all of the data; returns False if the client does not get it."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        return False
    return True
