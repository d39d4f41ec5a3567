"""From journals and sockets into batches of rows."""
