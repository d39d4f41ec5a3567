"""Finds and loads installed packs: entry points of the group `subluminal.packs`.

A pack decides calls, so its code must not come from the repository that an agent works on. Only the
site directories of this Python are searched, and the directory that Subluminal itself was imported
from; never the working directory or PYTHONPATH. The module that an entry point names must lie where
its distribution was installed, too. Nothing is imported before that is known.

`load_reference` is for `sub pack` alone: there a person names a module of their own.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.shape import did_you_mean
from subluminal.core.intents.fingerprints import fingerprint_of, read_sources, sources_of
from subluminal.errors import PackConformanceError, SubluminalError
from subluminal.kernel.packs import Pack, assert_pack_conformance
from subluminal.kernel.refusals import told

if TYPE_CHECKING:
    from importlib.metadata import Distribution

GROUP = "subluminal.packs"
_REFERENCE = re.compile(r"\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*:\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*")
_sources: dict[str, tuple[ModuleType, str]] = {}
"""Every module that gave a pack, and its sources as they were when this process imported it."""


class PackProblem(SubluminalError):
    """A pack cannot be used. `problems` lists what is wrong with its shape, if that is why."""

    def __init__(self, message: str, *, hint: str | None = None, problems: Sequence[str] = ()):
        super().__init__(message, hint=hint)
        self.problems = tuple(problems)


class LoadedPack(NamedTuple):
    """A pack that may be used."""

    pack: Pack
    name: str
    """name of its entry point, or the reference that a person gave"""
    version: str
    fingerprint: str
    """changes with what the pack declares and with its code (fingerprints.py)"""


class _Entry(NamedTuple):
    """An entry point of one distribution."""

    name: str
    value: str
    distribution: str
    roots: tuple[str, ...]
    """directories in which the code of the distribution may lie"""


def installed() -> list[str]:
    """Returns the names of all installed packs, sorted. Imports none of them."""
    return sorted({entry.name for entry in _entries()})


def load_pack(name: str) -> LoadedPack:
    """Loads an installed pack by the name of its entry point. Raises PackProblem."""
    entries = list(_entries())
    found = [entry for entry in entries if entry.name == name]
    if not found:
        known = sorted({entry.name for entry in entries})
        raise PackProblem(f"pack `{name}` is not installed", hint=did_you_mean(name, known))
    if len(found) > 1:
        givers = " and ".join(sorted(f"`{entry.distribution}`" for entry in found))
        raise PackProblem(
            f"pack `{name}` is installed by {givers}", hint="uninstall all but one of them"
        )
    module, attribute = _split(name, found[0].value)
    _check_place(name, module, found[0])
    return _load(name, module, attribute)


def loaded(pack: Pack) -> LoadedPack:
    """Returns a pack that a program made itself, with its fingerprint. Raises PackProblem.

    The fingerprint covers the files of the modules that its guards come from.
    """
    if not isinstance(pack, Pack):
        raise PackProblem(f"a `{type(pack).__name__}` is neither a Pack nor the name of one")
    try:
        assert_pack_conformance(pack, allow_default_execute=True)
        guards = (*pack.policy.state_guards, *pack.policy.auth_guards, *pack.policy.business)
        files = {_file_of(guard) for guard in guards} - {None}
        sources = "".join(sorted(_read(pack.id, file) for file in files))
        return LoadedPack(pack, pack.id, pack.version, fingerprint_of(pack, sources))
    except PackConformanceError as error:
        said = "; ".join(error.problems)
        raise PackProblem(f"pack `{told(pack.id)}`: {said}", problems=error.problems) from None


def _file_of(guard: Any) -> str | None:
    """Returns the file of the module that a guard was made in; None in a console."""
    module = sys.modules.get(getattr(guard, "__module__", None) or "")
    return getattr(module, "__file__", None)


def load_reference(text: str) -> LoadedPack:
    """Loads the pack that a person names as `module:attribute`. Raises PackProblem.

    The module may be in the working directory, which is searched last.
    """
    module, attribute = _split(text, text)
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    return _load(text, module, attribute)


# Finding


def _entries() -> Iterator[_Entry]:
    """Yields all entry points of the group. Of a distribution that is there twice, the first."""
    from importlib import metadata  # a tenth of a second that only packs need

    seen = set()
    for distribution in metadata.distributions(path=_directories()):
        called = told(distribution.metadata["Name"] or "a distribution without a name")
        key = re.sub("[-_.]+", "-", called).lower()
        if key in seen:
            continue
        seen.add(key)
        try:
            points = [point for point in distribution.entry_points if point.group == GROUP]
        except (ValueError, TypeError, OSError):
            continue  # its list cannot be read, so it gives no pack
        if points:
            roots = _roots(distribution)
            for point in points:
                yield _Entry(point.name, point.value, called, roots)


def _directories() -> list[str]:
    """Returns the directories of `sys.path` into which distributions are installed."""
    import site

    import subluminal

    own = os.path.dirname(os.path.dirname(os.path.abspath(subluminal.__file__)))
    trusted = {*site.getsitepackages(), site.getusersitepackages(), own}
    real = {os.path.realpath(directory) for directory in trusted}
    return [path for path in sys.path if path and os.path.realpath(path) in real]


def _roots(distribution: "Distribution") -> tuple[str, ...]:
    """Returns where the code of a distribution may lie: for an editable one, its project too."""
    import json
    from urllib.parse import unquote, urlsplit

    roots = [os.path.realpath(str(distribution.locate_file("")))]
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        if origin["dir_info"]["editable"] is True:
            url = urlsplit(origin["url"])
            if url.scheme == "file":
                roots.append(os.path.realpath(unquote(url.path)))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        pass  # not editable
    return tuple(roots)


def _check_place(name: str, module: str, entry: _Entry) -> None:
    """Raises PackProblem if the module would be imported from anywhere else."""
    top = module.partition(".")[0]
    spec = _spec(name, top)
    places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())]
    for place in places:
        real = os.path.realpath(place)
        if not any(real.startswith(os.path.join(root, "")) for root in entry.roots):
            raise PackProblem(
                f"pack `{name}`: `{top}` would be loaded from `{place}`, which is not part of "
                f"`{entry.distribution}`",
                hint="packs must be installed; check PYTHONPATH and the working directory",
            )


def _spec(name: str, module: str) -> ModuleSpec:
    import importlib.util

    try:
        spec = importlib.util.find_spec(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - it imports the packages around the module
        raise _not_imported(name, error) from None
    if spec is None:
        raise PackProblem(f"pack `{name}`: there is no module `{module}`")
    return spec


# Loading


def _split(name: str, text: str) -> tuple[str, str]:
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise PackProblem(
            f"pack `{name}`: `{text}` does not name a module and an attribute",
            hint="write `module:attribute`",
        )
    return match[1], match[2]


def _load(name: str, module: str, attribute: str) -> LoadedPack:
    place = sources_of(_spec(name, module))
    sources = _read(name, place)
    pack = _imported(name, module, attribute)
    if sources != _read(name, place) or sources != _sources_at_import(module, sources):
        raise PackProblem(
            f"pack `{name}` was changed after it was loaded",
            hint="restart what uses it, so that all of it is new",
        )
    try:
        assert_pack_conformance(pack)
        return LoadedPack(pack, name, pack.version, fingerprint_of(pack, sources))
    except PackConformanceError as error:
        said = "; ".join(error.problems)
        raise PackProblem(f"pack `{name}`: {said}", problems=error.problems) from None


def _sources_at_import(module: str, sources: str) -> str:
    imported = sys.modules[module]
    known = _sources.get(module)
    if known is None or known[0] is not imported:
        known = _sources[module] = (imported, sources)
    return known[1]


def _read(name: str, place: str | None) -> str:
    if place is None:
        raise PackProblem(f"pack `{name}`: its module has no file, so its code has no fingerprint")
    try:
        return read_sources(place)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PackProblem(f"pack `{name}`: its files cannot be read: {reason}") from None
    except SubluminalError as error:
        raise PackProblem(f"pack `{name}`: {error}") from None


def _imported(name: str, module: str, attribute: str) -> Pack:
    try:
        value: Any = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever its code does, it is not a pack
        raise _not_imported(name, error) from None
    if not isinstance(value, Pack):
        raise PackProblem(
            f"pack `{name}`: `{module}:{attribute}` is a `{type(value).__name__}`, not a Pack",
            hint="make it with `subluminal.kernel.Pack(…)`",
        )
    return value


def _not_imported(name: str, error: BaseException) -> PackProblem:
    said = " ".join(told(error).split())
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return PackProblem(f"pack `{name}` does not import: {reason}")
