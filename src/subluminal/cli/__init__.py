"""The `sub` command: `main` dispatches, `frame` parses, `commands` act, `screens` print."""
