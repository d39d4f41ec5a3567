"""The JSON Schemas of the contracts, with the documentation of their fields."""

import importlib
import json
import pkgutil
from typing import Any

from msgspec import Struct
from tools.field_docs import doc_of, one_line

import subluminal.contracts
from subluminal.contracts.schemas import schemas


def schema_files() -> dict[str, str]:
    """Returns `schema/NAME.schema.json` for every contract."""
    structs = _structs()
    return {
        f"schema/{name}.schema.json": json.dumps(_documented(schema, structs), indent=2) + "\n"
        for name, schema in schemas().items()
    }


def _structs() -> dict[str, type]:
    found: dict[str, type] = {}
    for module in pkgutil.iter_modules(subluminal.contracts.__path__, "subluminal.contracts."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, type) and issubclass(value, Struct):
                found[name] = value
    return found


def _documented(schema: dict[str, Any], structs: dict[str, type]) -> dict[str, Any]:
    for name, definition in schema["$defs"].items():
        if "description" in definition:
            definition["description"] = one_line(definition["description"])
        for field, property_ in definition.get("properties", {}).items():
            doc = doc_of(structs[name], field)
            if doc:
                property_["description"] = one_line(doc)
    return schema
