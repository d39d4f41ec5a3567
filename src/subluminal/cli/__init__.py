"""The `sub` command: `main` dispatches, `frame` parses, `output` prints."""
