"""What changed between two policies, part by part, and the reports of it."""
