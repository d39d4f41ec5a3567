"""Runs as processes take part in them: named, opened, attended, closed, tidied."""
