"""What a call leaves on record: previews, redaction, its events."""
