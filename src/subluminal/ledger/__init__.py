"""The ledger: everything that shims journalled, stored, searchable, live and provable.

One process, ledgerd, owns `ledger.db` and is its only writer; readers open the file read-only.
Nothing here is on the hot path, and the hot path cannot reach it. Needs the `daemon` extra. Import
the module you need.

Rooms, each of which may import the ones below it (import-linter keeps this):

    client                  finds a ledger and asks it: over ledgerd's socket, or from the file
    daemon                  ledgerd: its lock, its sockets, its threads
    api     proof           HTTP over the queries; the proof that nothing was changed
    query   upkeep          reads the ledger; keeps it small, indexed and signed
    store                   the SQLite file: opens it, writes batches to it, reads events back
    ingest  filter          events to rows; the filter language. No SQL

The engine seam: `ingest`, `filter`, `query.records` and `query.questions` are shared by every
engine, and so are their tests. They say which rows follow from which events, what may be asked, how
answers look and how they are paged. SQL is each engine's own: today SQLite's, in `store`, `query`,
`upkeep` and `proof`. A second engine (PostgreSQL, in `fleet`) writes its own SQL for the same rows,
and answers the same questions with the same records.
"""
