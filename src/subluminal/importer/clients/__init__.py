"""A description of each client: where its files are, and what an entry looks like in them."""
