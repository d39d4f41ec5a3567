"""`sub doctor`: whether Subluminal would work here. One module a group of checks; none changes
anything that is the user's."""
