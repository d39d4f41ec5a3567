"""The filter language of `sub query`, `sub tail`, the API and the UI: parsing and matching.

Shared by every engine: no SQL here. Needs only the standard library, so that commands start fast.
"""
