"""Trust: `identity/` is who acts and where."""
