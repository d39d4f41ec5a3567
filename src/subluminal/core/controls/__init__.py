"""What a person may do to a run: stop it, answer for a call, grant an exception."""
