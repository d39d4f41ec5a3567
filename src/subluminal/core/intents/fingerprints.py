"""The fingerprint of a pack: SHA-256 over what it declares and over the files of its code.

It covers id, version, contract, intents, refusal codes, signals, default, the names of the guards
in their order, and the bytes of every file in the package that holds the pack's module (of a module
without a package: that file). Compiled files do not count. It has no paths of a machine and no
times: the same pack has the same fingerprint everywhere. What the pack imports from elsewhere is
not covered: keep a pack in a package of its own, and raise its version when what it uses changes.
"""

import hashlib
import os
from collections.abc import Iterator
from importlib.machinery import ModuleSpec

from subluminal.errors import PackConformanceError, SubluminalError
from subluminal.kernel.packs import Pack
from subluminal.kernel.plain import sha256_canonical
from subluminal.kernel.policies import guard_name
from subluminal.kernel.refusals import told

_MAX_BYTES = 64 << 20
"""Most bytes of a pack's files: they are read whenever the pack is loaded."""
_COMPILED = ("__pycache__",)
_PHASES = ("state_guards", "auth_guards", "business")


def sources_of(spec: ModuleSpec) -> str | None:
    """Returns the directory or the file that holds the code of a module; None if there is none."""
    if spec.origin is None or not spec.has_location:
        return None
    return os.path.dirname(spec.origin) if "." in spec.name or _is_package(spec) else spec.origin


def _is_package(spec: ModuleSpec) -> bool:
    return spec.submodule_search_locations is not None


def read_sources(place: str) -> str:
    """Returns a hash over the files of a directory, or of one file. Raises OSError."""
    files = {}
    left = _MAX_BYTES
    for name, path in _files(place):
        with open(path, "rb") as file:
            data = file.read(left + 1)
        left -= len(data)
        if left < 0:
            raise SubluminalError(f"its package has more than {_MAX_BYTES >> 20} MiB of files")
        files[name] = hashlib.sha256(data).hexdigest()
    return sha256_canonical(files)


def _files(place: str) -> Iterator[tuple[str, str]]:
    """Yields name and path of every file; names are relative, with `/`."""
    if not os.path.isdir(place):
        yield os.path.basename(place), place
        return
    for folder, below, names in os.walk(place, onerror=_fail):
        below[:] = [name for name in below if name not in _COMPILED]
        for name in names:
            path = os.path.join(folder, name)
            if not name.endswith(".pyc") and os.path.isfile(path):
                relative = os.path.relpath(path, place).replace(os.sep, "/")
                yield told(relative), path


def _fail(error: OSError) -> None:
    raise error


def fingerprint_of(pack: Pack, sources: str) -> str:
    """Returns the fingerprint, in lowercase hex, of a pack that has its shape.

    Raises PackConformanceError if its guards are not lists.
    """
    try:
        guards = {
            phase: [guard_name(guard) for guard in getattr(pack.policy, phase)] for phase in _PHASES
        }
    except TypeError:
        raise PackConformanceError(pack.id, ["its guards are not lists"]) from None
    return sha256_canonical(
        {
            "id": pack.id,
            "version": pack.version,
            "contract": pack.contract,
            # A pack may have sets, whose order is another one in each process.
            "intents": sorted(pack.intents),
            "basis_codes": sorted(pack.basis_codes),
            "signals": sorted(pack.signals),
            "default": pack.policy.default,
            "guards": guards,
            "sources": sources,
        }
    )
