"""Runs on their way out of the house. Takes events, knows neither ledger nor journals."""
