"""The OpenAPI document, made from the types that the server reads and writes."""

from typing import Any

import msgspec

from subluminal import __version__
from subluminal.ledger.api.ingest import Taken
from subluminal.ledger.api.resources import RESOURCES, Resource
from subluminal.ledger.api.signing import SignedRecord
from subluminal.ledger.api.status import StatusRecord

_REF = "#/components/schemas/{name}"


class ErrorRecord(msgspec.Struct, frozen=True):
    """What is wrong, and what to do."""

    error: str
    hint: str | None = None


def document() -> dict[str, Any]:
    """The whole document."""
    types = [resource.answers for resource in RESOURCES]
    types += [ErrorRecord, SignedRecord, Taken, StatusRecord]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    paths = {
        resource.path: {"get": _operation(resource, schema)}
        for resource, schema in zip(RESOURCES, schemas, strict=False)
    }
    paths["/v1/status"] = {"get": _plain("the state of ledgerd", schemas[-1], "application/json")}
    paths["/metrics"] = {
        "get": _plain("metrics for Prometheus", {"type": "string"}, "text/plain; version=0.0.4")
    }
    paths["/v1/checkpoints"] = {
        "post": _plain("sign a checkpoint of all that is recorded", schemas[-3], "application/json")
    }
    paths["/v1/events"] = {"post": _ingest(schemas[-2])}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Subluminal ledger", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(resource: Resource, schema: dict[str, Any]) -> dict[str, Any]:
    in_path = [part[1:-1] for part in resource.path.split("/") if part.startswith("{")]
    responses = {
        "200": _content("found", schema, "application/json"),
        "400": _error("a parameter is wrong"),
        "503": _error("the ledger cannot be read now"),
    }
    if in_path:
        responses["404"] = _error("the ledger does not have it")
    return {
        "summary": resource.summary,
        "operationId": resource.path.strip("/").replace("/", "_").replace("{", "").replace("}", ""),
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in in_path
            ),
            *_query_parameters(resource),
        ],
        "responses": responses,
    }


def _query_parameters(resource: Resource) -> list[dict[str, Any]]:
    (_,), components = msgspec.json.schema_components([resource.parameters], ref_template=_REF)
    inline = components.get(resource.parameters.__name__, {})
    found = []
    for name, schema in inline.get("properties", {}).items():
        found.append({"name": name, "in": "query", "schema": _inlined(schema, components)})
    return found


def _inlined(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without references, and without null: null means absent."""
    options = [option for option in schema.get("anyOf", [schema]) if option != {"type": "null"}]
    option = dict(options[0])
    if "$ref" in option:
        option = dict(components[option["$ref"].rpartition("/")[2]])
    option.pop("default", None)
    return option


def _plain(summary: str, schema: dict[str, Any], media_type: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": _content("done", schema, media_type),
            "503": _error("the ledger cannot be read now"),
        },
    }


def _ingest(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": "store events; answers once they are stored",
        "requestBody": {
            "required": True,
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        },
        "responses": {
            "200": _content("stored", schema, "application/json"),
            "413": _error("the body is too large"),
            "415": _error("not JSON lines"),
            "503": _error("the ledger cannot take more lines now; try again"),
        },
    }


def _content(description: str, schema: dict[str, Any], media_type: str) -> dict[str, Any]:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def _error(description: str) -> dict[str, Any]:
    return _content(description, {"$ref": _REF.format(name="ErrorRecord")}, "application/json")
