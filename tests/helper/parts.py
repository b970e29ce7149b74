# An independent reader and writer of checkpoints in parts, as adam-checkpoint(5) describes them.
#
#   parts.py check FOLDER       whether index, parts and manifest agree in every byte; prints the
#                               tensors
#   parts.py join FOLDER FILE   all of it in one safetensors file
#   parts.py split FILE FOLDER  the file's tensors in two parts and an index, as Hugging Face's
#                               tools write them
import json
import pathlib
import struct
import sys
import zlib

INDEX = "model.safetensors.index.json"


def read(path):
    """Header, and the bytes of each tensor."""
    raw = path.read_bytes()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:end])
    metadata = header.pop("__metadata__", {})
    place = 0
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = entry["data_offsets"]
        size = 4
        for dim in entry["shape"]:
            size *= dim
        assert entry["dtype"] == "F32" and begin == place and stop == begin + size, name
        tensors[name] = (entry["shape"], raw[end + begin : end + stop])
        place = stop
    assert len(raw) == end + place
    return metadata, tensors


def write(path, metadata, tensors):
    header, place = {"__metadata__": metadata}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [place, place + len(data)]}
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(d for _, d in tensors.values()))


def read_parts(folder):
    index = json.loads((folder / INDEX).read_text())
    tensors = {}
    for name in sorted(set(index["weight_map"].values())):
        metadata, part = read(folder / name)
        assert metadata["format"] == "adam" and metadata["index"] == INDEX
        for tensor in part:
            assert index["weight_map"][tensor] == name and tensor not in tensors, tensor
        tensors.update(part)
    assert set(tensors) == set(index["weight_map"])
    assert index["metadata"]["total_size"] == sum(len(data) for _, data in tensors.values())
    return index, tensors


def check(folder):
    index, tensors = read_parts(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    listed = {entry["name"]: entry for entry in manifest["files"]}
    assert set(listed) == set(index["weight_map"].values()) | {INDEX}
    assert set(path.name for path in folder.iterdir()) == set(listed) | {"manifest.json"}
    for name, entry in listed.items():
        raw = (folder / name).read_bytes()
        assert entry["bytes"] == len(raw) and entry["crc32"] == "%08x" % zlib.crc32(raw), name
    count = len(set(index["weight_map"].values()))
    names = ["model-%05d-of-%05d.safetensors" % (i + 1, count) for i in range(count)]
    assert set(names) == set(index["weight_map"].values())
    print("\n".join(sorted(tensors)))


def join(folder, path):
    index, tensors = read_parts(folder)
    metadata = {key: value for key, value in index["metadata"].items() if key != "total_size"}
    write(path, metadata, tensors)


def split(path, folder):
    metadata, tensors = read(path)
    folder.mkdir()
    weight_map = {}
    for i in range(2):
        name = "model-%05d-of-00002.safetensors" % (i + 1)
        part = dict(list(tensors.items())[i::2])
        write(folder / name, {"format": "pt"}, part)
        weight_map.update((tensor, name) for tensor in part)
    total = sum(len(data) for _, data in tensors.values())
    index = {"metadata": dict(metadata, total_size=total), "weight_map": weight_map}
    (folder / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


{"check": check, "join": join, "split": split}[sys.argv[1]](*map(pathlib.Path, sys.argv[2:]))
