"""Cuts the power of stores that were written through lossy_disk.c: of what was not synced, each
sector of 512 bytes came to the disk or not, and each name that was made or removed is there or not.

    lossy_disk.py SEED FOLDER...    prints how many sectors and names were lost
"""
import os
import random
import struct
import sys

SECTOR = 512


def take_back(path, undo, chance):
    """What stood there before the first write since the last sync, where it is lost."""
    with open(undo, "rb") as file:
        data = file.read()
    entries, at = [], 0
    while at + 16 <= len(data):
        offset, length = struct.unpack_from("<QQ", data, at)
        if at + 16 + length > len(data):
            break  # killed before it wrote
        entries.append((offset, data[at + 16:at + 16 + length]))
        at += 16 + length
    lost = {}
    with open(path, "r+b") as file:
        for offset, before in reversed(entries):
            for i in range(0, len(before), SECTOR):
                sector = (offset + i) // SECTOR
                if lost.setdefault(sector, chance.random() < 0.5):
                    file.seek(offset + i)
                    file.write(before[i:i + SECTOR])
    return sum(lost.values())


def cut(folder, chance):
    undo, sectors, names = folder + ".undo", 0, 0
    if not os.path.isdir(undo):
        return 0, 0
    for name in sorted(os.listdir(undo)):
        path, of = os.path.join(undo, name), os.path.join(folder, name)
        if name.endswith(".log") and os.path.exists(of):
            sectors += take_back(of, path, chance)
    for name in sorted(os.listdir(undo)):
        path, of = os.path.join(undo, name), os.path.join(folder, name.rsplit(".", 1)[0])
        if name.endswith(".new") and os.path.exists(of) and chance.random() < 0.5:
            os.unlink(of)
            names += 1
        elif name.endswith(".gone") and not os.path.exists(of) and chance.random() < 0.5:
            os.link(path, of)
            names += 1
        os.unlink(path)
    return sectors, names


def main():
    chance = random.Random(int(sys.argv[1]))
    lost = [cut(folder.rstrip("/"), chance) for folder in sys.argv[2:]]
    print(*(sum(each) for each in zip(*lost)))


main()
