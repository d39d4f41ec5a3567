"""Intents at the doors: installed packs, found and loaded."""
