"""Memory whose user is killed after so many stores."""


class Killed(BaseException):
    """Stands for SIGKILL between two stores, or in the middle of a long one."""


class Mortal:
    """Memory that lets a process make so many stores and then kills it."""

    def __init__(self, memory, life):
        self._memory = memory
        self._life = life

    def __getitem__(self, at):
        return self._memory[at]

    def __setitem__(self, at, value):
        self._life["stores"] -= 1
        if self._life["stores"] >= 0:
            self._memory[at] = value
            return
        if isinstance(at, slice):
            # A copy of many bytes is cut anywhere; only a single word is stored whole.
            cut = len(value) // 2
            self._memory[at.start : at.start + cut] = value[:cut]
        raise Killed


class MortalBytes(Mortal):
    """The same for the bytes; struct wants the real buffer to read from."""

    def __getitem__(self, at):
        return bytes(self._memory[at])
