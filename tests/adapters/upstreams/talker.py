"""A server that writes all of its output before it reads: talker.py LOG PLAYBACK."""

import sys

log, playback = sys.argv[1:3]
with open(playback, "rb") as file:
    while data := file.read(65536):
        while data:
            data = data[sys.stdout.buffer.raw.write(data) :]
with open(log, "wb", buffering=0) as file:
    while data := sys.stdin.buffer.raw.read(65536):
        file.write(data)
