"""Behind `sub promote`: which hint is meant, the edit of a policy's file, and its review."""
