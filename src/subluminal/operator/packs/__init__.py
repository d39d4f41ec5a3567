"""Packs as `sub pack` knows them: found, described, checked, tested and replayed."""
