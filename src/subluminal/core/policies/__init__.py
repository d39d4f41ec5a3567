"""The policies of a run: files found, compiled, cached, watched and pinned."""
