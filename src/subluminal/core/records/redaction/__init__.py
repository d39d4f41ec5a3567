"""Masks secrets in whatever we write down, before it is written (unprintable-secrets).

`redactor.Redactor` for text, `stream.StreamRedactor` for stderr. Forwarded bytes never come here.
"""
