"""Intents of the kernel at the doors: packs that are installed, what they say about tool calls.

packs      finds and loads installed packs, and their fingerprints
outcomes   the kernel's six decisions in the terms of Contract C
"""
