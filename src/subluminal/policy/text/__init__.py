"""Bytes of a file to plain values with their places, and problems told at those places."""
