"""What a tool call touches: commands, paths and hosts (one-matcher-per-idea). No behaviour.

`core.targets` reads targets from a call's arguments. Policies get them as facts.
"""

from typing import Literal

from msgspec import Struct, field

Access = Literal["read", "write"]


class PathTarget(Struct, frozen=True, omit_defaults=True):
    """A file or directory that a call names."""

    path: str
    """absolute path; a path that leads through a link is listed as written and as resolved"""
    access: Access
    """what the call does with it; a path that may be read or written is listed twice"""


class Targets(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Additive: what a tool call touches, as far as its arguments say."""

    commands: list[list[str]] = field(default_factory=list)
    """commands of shell lines, each as its words, quotes removed; a command inside of another, as
    in `sudo git push`, is listed too"""
    paths: list[PathTarget] = field(default_factory=list)
    """files and directories"""
    hosts: list[str] = field(default_factory=list)
    """names or addresses of hosts, in lower case"""
    opaque: bool = False
    """whether the arguments do not tell everything: the call may touch more than is listed"""
    why: list[str] = field(default_factory=list)
    """reasons for `opaque`"""
    roots: list[str] = field(default_factory=list)
    """directory of the repository in which the call acts, or the working directory outside of a
    repository; as written, and as resolved if a link leads there"""
    masked: bool = False
    """in records: whether secrets were masked, or targets were left out"""
