"""The filter language: parsed, matched, explained."""
