"""A run for other systems: the artifact, JUnit, SARIF, Markdown. Callers bring the event lines."""
