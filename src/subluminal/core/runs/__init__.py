"""A run as this process takes part in it: opened, named, attended, closed."""
