"""A server that measures what it reads and writes as much as it is asked to, in constant memory.

For each call: reads its line piece by piece, and answers {"size", "sha256"} of the line. A call of
the tool `say` gets a result of `arguments.bytes` bytes; its SHA-256 goes to the file in argv[1].
"""

import hashlib
import json
import re
import sys

PIECE = 65536


def main():
    source = sys.stdin.buffer
    while True:
        digest, size, head = hashlib.sha256(), 0, b""
        while True:
            piece = source.readline(PIECE)
            if not piece:
                return
            digest.update(piece)
            size += len(piece)
            head = head or piece[:300]
            if piece.endswith(b"\n"):
                break
        found = re.search(rb'"id":(\d+)', head)
        if not found:
            continue
        if b'"say"' in head:
            say(found.group(1), int(re.search(rb'"bytes":(\d+)', head).group(1)))
        else:
            weight = {"size": size, "sha256": digest.hexdigest()}
            write(
                b'{"jsonrpc":"2.0","id":%b,"result":%b}\n'
                % (found.group(1), json.dumps(weight).encode())
            )


def say(id_, size):
    digest = hashlib.sha256()
    chunk = b"0123456789abcdef" * (PIECE // 16)

    def out(data):
        digest.update(data)
        write(data)

    out(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"' % id_)
    for _ in range(size // PIECE):
        out(chunk)
    out(b'"}],"isError":false}}')
    with open(sys.argv[1], "w") as file:
        file.write(digest.hexdigest())
    write(b"\n")


def write(data):
    while data:
        data = data[sys.stdout.buffer.raw.write(data) :]


main()
