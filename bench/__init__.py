"""Benchmarks: ratios of two things measured in one run, each against a bar. See bench/README.md."""
