"""Adds bindings to `config.toml`. What a person wrote there, comments included, stays as it is."""

import os
from collections.abc import Iterable

from subluminal.config.loading import parse_settings
from subluminal.config.places import Places
from subluminal.contracts.bindings import SecretBinding
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.importer.files import read_config, replace
from subluminal.importer.text.notation import TOML
from subluminal.secrets.private_files import write_private


def add_bindings(places: Places, added: Iterable[tuple[str, SecretBinding]]) -> None:
    """Writes bindings at the end of the file, durably."""
    exists = os.path.exists(places.settings)
    found = read_config(places.settings) if exists else None
    text = found.data.decode("utf-8") if found else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    for server, binding in added:
        lines = [
            "" if text else None,
            f"[[servers.{TOML.quote(server)}.secret_bindings]]",
            f"inject_as = {TOML.quote(binding.inject_as)}",
            f"secret_ref = {TOML.quote(binding.secret_ref)}",
            f"source = {TOML.quote(binding.source.value)}",
        ]
        text += "".join(line + newline for line in lines if line is not None)
    try:
        parse_settings(text.encode("utf-8"), places.settings)
    except InvalidInput:
        raise SubluminalError(
            f"cannot add bindings to `{places.settings}`: a server's `secret_bindings` is written "
            "in another form",
            hint="write them as `[[servers.NAME.secret_bindings]]`",
        ) from None
    if found:
        replace(found, text.encode("utf-8"))
    else:
        write_private(places.settings, text.encode("utf-8"))
