"""Behind `sub doctor`: checks of whether Subluminal works here. No check changes a user's files."""
