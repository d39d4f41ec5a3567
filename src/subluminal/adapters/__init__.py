"""The doors: each turns one protocol into ToolCalls and decisions into that protocol's answers.

An adapter decides nothing, and the core knows no adapter (Pack section 7).
"""
