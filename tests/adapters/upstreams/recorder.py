"""A server that writes down what it reads, byte by byte, and plays back what it was given.

recorder.py LOG PLAYBACK [CHUNK]: stdin goes to LOG, PLAYBACK to stdout in chunks; both at once, so
that neither direction waits for the other. Ends when both have ended.
"""

import sys
import threading


def record(log):
    with open(log, "wb", buffering=0) as file:
        while data := sys.stdin.buffer.raw.read(65536):
            file.write(data)


def play(playback, chunk):
    with open(playback, "rb") as file:
        while data := file.read(chunk):
            while data:
                data = data[sys.stdout.buffer.raw.write(data) :]


log, playback = sys.argv[1:3]
reader = threading.Thread(target=record, args=(log,))
reader.start()
play(playback, int(sys.argv[3]) if len(sys.argv) > 3 else 65536)
reader.join()
