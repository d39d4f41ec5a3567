"""The text of policy files: read with the place of every value, and edited in place."""
