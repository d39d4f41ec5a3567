"""The cases of tests/cases/scan: for each rule a file of hits and near misses, as data."""

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "cases" / "scan"
COMPLETE = {
    "version": "1.0.0",
    "publisher": "Acme",
    "source": "https://example.org/demo",
    "verified": True,
    "permissions": ["clipboard.read"],
}
"""Members of a manifest in which the rules for manifests find nothing."""


class Case(NamedTuple):
    """A hit or a near miss of one rule."""

    rule: str
    name: str
    is_hit: bool
    data: dict[str, Any]

    def __str__(self) -> str:
        kind = "hit" if self.is_hit else "near miss"
        return f"{self.rule}: {kind}: {self.name}"

    def words(self, home: Path) -> list[str]:
        """Writes the case's files below a home. Returns the words of a scan that reads them."""
        manifests = self._manifests()
        for name, text in self._files().items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
            file.chmod(0o600)
        for name, mode in self.data.get("modes", {}).items():
            (home / name).chmod(int(mode, 8))
        paths = []
        for at, manifest in enumerate(manifests):
            path = home / f"manifest-{at}.json"
            path.write_text(json.dumps(manifest))
            paths.append(str(path))
        return ["scan", *(["--manifest", *paths] if paths else []), "--format", "json"]

    def _files(self) -> dict[str, str]:
        data = self.data
        if "entry" in data:
            return {".claude.json": f'{{"mcpServers": {{"s": {data["entry"]}}}}}'}
        if "path" in data:
            return {data["path"]: data["text"]}
        return dict(data.get("files", {}))

    def _manifests(self) -> list[dict[str, Any]]:
        data = self.data
        if "manifest" in data:
            return [json.loads(data["manifest"])]
        servers = {"s": [json.loads(data["tool"])]} if "tool" in data else {}
        servers |= json.loads(data.get("servers", "{}"))
        return [{"name": name, **COMPLETE, "tools": tools} for name, tools in servers.items()]


def read_cases(rule: str) -> list[Case]:
    """Returns the cases of a rule."""
    read = tomllib.loads((FOLDER / f"{rule}.toml").read_text("utf-8"))
    return [
        Case(rule, data["name"], kind == "hit", data)
        for kind in ("hit", "near_miss")
        for data in read.get(kind, ())
    ]
