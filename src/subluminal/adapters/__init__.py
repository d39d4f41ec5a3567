"""The doors: each turns one protocol into ToolCalls and decisions into that protocol's answers.

An adapter does not decide, and the core does not know any adapter (Pack section 7).
"""
