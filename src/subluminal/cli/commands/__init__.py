"""One file per verb, each with EXAMPLE, add_arguments and run: parsing and printing only."""
