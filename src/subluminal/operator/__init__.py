"""What a person does: run an agent, stop, grant, promote, check. Services without a terminal."""
