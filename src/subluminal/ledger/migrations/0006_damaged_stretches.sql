-- Damaged lines next to each other are one row, and the table is bounded. The counts are of all lines.

ALTER TABLE quarantine ADD COLUMN length INTEGER;            -- bytes with newlines; NULL: not known
ALTER TABLE quarantine ADD COLUMN digest BLOB;               -- SHA-256 of these bytes
ALTER TABLE quarantine ADD COLUMN lines INTEGER NOT NULL DEFAULT 1;

INSERT INTO counters (name, value) SELECT 'quarantined', count(*) FROM quarantine
  HAVING count(*) > 0;
