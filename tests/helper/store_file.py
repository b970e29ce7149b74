"""Stores of parameter servers as adam-store(5) tells them, from another hand: reads them, and writes
them.

    store_file.py write FOLDER     one of a known content: two segments, four shards
    store_file.py read FOLDER      prints a line for each shard: shard version epoch weights pushes
    store_file.py flip FILE AT     changes a byte of a file
"""
import struct
import sys
from pathlib import Path

BLOCK, SEGMENT = 4096, 64 << 20
HEAD = struct.Struct("<8sII16s64sQQIIQQIIIII")
RUN, SERVER = bytes(range(16)), b"ps-0"
UNKNOWN = 2**32 - 1


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def block(kind, log, group, shard=0, bucket=0, epoch=0, version=0, counts=(0, 0, 0), crc=0, listed=()):
    head = HEAD.pack(b"adamlog1", 0, kind, RUN, SERVER, log, group, shard, bucket, epoch, version,
                     *counts, crc, len(listed))
    body = head.ljust(256, b"\0") + b"".join(struct.pack("<II", *pair) for pair in listed)
    body = body.ljust(BLOCK, b"\0")
    return body[:8] + struct.pack("<I", crc32c(body[12:])) + body[12:]


def weights_of(shard, version):
    return [shard + version / 4 + i for i in range(5)]


def record(log, group, shard, version):
    floats = weights_of(shard, version)
    payload = struct.pack("<5f", *floats) + struct.pack("<5f", *(-f for f in floats))
    payload += struct.pack("<QQQ", 77, version, 5)
    first = block(1, log, group, shard, UNKNOWN, 3, version, (5, 5, 1), crc32c(payload))
    return first + payload.ljust(BLOCK, b"\0")


def commit(log, group, shards):
    return block(2, log, group, listed=[(shard, 2) for shard in shards])


def write(folder):
    Path(folder).mkdir(exist_ok=True)
    segments = {
        1: [block(0, 1, 1), record(1, 1, 0, 1), record(2, 1, 7, 1), commit(3, 1, [0, 7]),
            record(4, 4, 0, 2), commit(5, 4, [0]),
            record(6, 6, 9, 9), commit(7, 6, [9])],  # failed: the next segment begins with 6
        2: [block(0, 6, 2), record(6, 6, 1, 1), record(7, 6, 2, 4), commit(8, 6, [1, 2]),
            commit(9, 9, [])],
    }
    for number, blocks in segments.items():
        with open(Path(folder, "%08d.log" % number), "wb") as file:
            file.write(b"".join(blocks))
            file.truncate(SEGMENT)


def records(path):
    data = path.read_bytes()
    at = BLOCK
    while at + BLOCK <= len(data):
        head = data[at:at + BLOCK]
        magic, crc, kind, run, server, log, group, shard, bucket, epoch, version, w, s, p, payload_crc, n = \
            HEAD.unpack_from(head)
        if magic != b"adamlog1" or crc != crc32c(head[12:]):
            return
        size = 4 * (w + s) + 24 * p
        payload = data[at + BLOCK:at + BLOCK + size]
        if kind == 1:
            assert payload_crc == crc32c(payload), "payload of shard %d" % shard
            pushes = [struct.unpack_from("<QQQ", payload, 4 * (w + s) + 24 * i) for i in range(p)]
            yield log, shard, version, epoch, struct.unpack_from("<%df" % w, payload), pushes
        else:
            assert kind in (2, 3)
        at += BLOCK + -(-size // BLOCK) * BLOCK


def read(folder):
    newest = {}
    for path in sorted(Path(folder).glob("*.log")):
        for log, shard, *rest in records(path):
            newest[shard] = rest
    for shard, (version, epoch, floats, pushes) in sorted(newest.items()):
        print(shard, version, epoch, len(floats), sum(floats), sum(p[1] for p in pushes))


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(int(at))
        byte = file.read(1)
        file.seek(int(at))
        file.write(bytes([byte[0] ^ 1]))


if __name__ == "__main__":
    {"write": write, "read": read, "flip": flip}[sys.argv[1]](*sys.argv[2:])
