"""One small description per client: where its files are, and what an entry looks like in them."""
