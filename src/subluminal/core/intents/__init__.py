"""Intents of the kernel at the doors: packs that are installed, what they say about tool calls.

packs, fingerprints  finds and loads installed packs, and knows each by a fingerprint
index                what the compiler of policies knows of packs
judging              asks the packs of kernel rules about a call, before the run's lock
outcomes             the kernel's six decisions in the terms of Contract C
confirming           whether a person has already approved an intent
audits               the kernel's audit records as they go into the journal
"""
