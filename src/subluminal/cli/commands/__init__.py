"""One file a verb: EXAMPLE, add_arguments, run."""
