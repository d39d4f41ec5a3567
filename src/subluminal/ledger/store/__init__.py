"""The SQLite file: its tables, its one writer, its rows."""
