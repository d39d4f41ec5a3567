"""The core: decides and records tool calls. A door holds a `host.Host`; see ARCHITECTURE.md."""
