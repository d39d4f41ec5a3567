"""Finds what is risky in the entries of clients' configurations, and in what servers list.

`rules` has the rules, levels and rows. `entries` judges one entry of a configuration, with
`launching` (command lines), `approval` (switches of each client) and `exposure` (file modes).
`definitions` judges the tools of one server, with `instructions` and `unseen`; `naming` compares
the tools of several servers. `manifest` reads Agent-SPM's manifests. `scanning` makes the rows.

Files and definitions are given by the caller: nothing here starts a program or opens a connection.
"""
