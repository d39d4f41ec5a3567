"""Warnings about a valid bundle, for `sub policy lint`: what its author probably did not mean."""
