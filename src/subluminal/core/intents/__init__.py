"""Intents of the kernel at the doors: packs that are installed, what they say about tool calls.

packs          finds and loads installed packs
fingerprints   what a pack's fingerprint covers
outcomes       the kernel's six decisions in the terms of Contract C
judging        asks the packs of `kernel` rules about tool calls
"""
