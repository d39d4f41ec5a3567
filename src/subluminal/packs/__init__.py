"""Packs that come with Subluminal, installed like anyone's (entry points in pyproject.toml).

payments_pix    charges and refunds of Brazil's instant payments, after the public project's pack
shell           command lines, and files that are written or deleted
fields          how a guard reads members of a payload or a state

The version of both is Subluminal's: their fingerprints change with the parser that they use.
"""
