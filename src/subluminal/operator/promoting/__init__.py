"""Behind `sub promote`: find the refused call of a hint, then grant it or edit a policy for it."""
