"""What a person does with Subluminal: run an agent, stop, approve, promote, check, manage secrets.

Services for the `sub` command and, through wiring, for the web page. They take plain values and
return plain values, or raise SubluminalError. They know no parser and no terminal.
"""
