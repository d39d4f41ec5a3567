"""What is recorded of calls: their events, previews, redaction, tool lists."""
