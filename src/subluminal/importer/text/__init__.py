"""JSON, JSONC and TOML as trees of spans. A change is a list of edits; all other bytes are kept."""
