"""Masks secrets in whatever is recorded, before it is written (unprintable-secrets).

`redactor.Redactor` masks text; `scanning` finds secrets in journals that exist already. Bytes that
are forwarded never come here.
"""
