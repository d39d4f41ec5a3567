"""Finds out what the arguments of a call contain: classes of data, and texts that rules look for.

`reading` searches, in one pass with the shapes of the redactor; `shapes` says what payment cards,
social security numbers, e-mail addresses and phone numbers look like.
"""
