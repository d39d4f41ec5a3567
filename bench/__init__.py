"""Benchmarks: ratios of two tasks measured in one run, each against a bar. See bench/README.md."""
