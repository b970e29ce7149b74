# For the tests of adam-worker: a data set that is learnt in a moment.

# Makes train.idx, train.lab (103 pictures of 8x8, three classes: which third is
# bright), test.idx, test.lab (60), and tiny.net.
tiny_set() {
    python - <<'END'
import numpy as np
rng = np.random.default_rng(5)
for name, count in ("train", 103), ("test", 60):
    labels = rng.integers(0, 3, count)
    images = rng.integers(0, 90, (count, 8, 8))
    for image, label in zip(images, labels):
        image[:, label * 3 : label * 3 + 2] += 120
    head = np.array([0x803, count, 8, 8], ">u4").tobytes()
    open(name + ".idx", "wb").write(head + images.astype(np.uint8).tobytes())
    head = np.array([0x801, count], ">u4").tobytes()
    open(name + ".lab", "wb").write(head + labels.astype(np.uint8).tobytes())
END
    cat >tiny.net <<'END'
input 1x8x8 ops='scale 1/255; mean 0.4'
conv  c1 maps=4 kernel=3 pad=1 act=relu
maxpool  size=2
dense d1 units=16 act=relu dropout=0.2
softmax  units=3
END
}

# adam-worker on it, with more options.
tiny() {
    adam-worker --model tiny.net --data train.idx --labels train.lab "$@"
}

# Starts it in the background, and waits until it trains.
start_tiny() {
    local folder=${*: -1}
    start adam-worker --model tiny.net --data train.idx --labels train.lab "$@"
    wait_for grep -q '"event":"start"' "$folder/metrics.jsonl"
}

# The values of a field over the lines of an event.
metrics() {
    jq -c "select(.event == \"$2\") | .$3" "$1/metrics.jsonl"
}

same_model() {
    cmp "$1/latest/model.safetensors" "$2/latest/model.safetensors"
}

# How far an average of weights is from the weights, for each tensor of a run's newest checkpoint: a
# line with its name, the largest difference, and the largest difference of the weights from those
# of the run START.
averages() { # RUN [START]
    python - "$@" <<'END'
import json, struct, sys
import numpy as np

def tensors(run):
    raw = open(f"{run}/latest/model.safetensors", "rb").read()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    return {name: np.frombuffer(raw[end:], "<f4")[at["data_offsets"][0] // 4 : at["data_offsets"][1] // 4]
            for name, at in json.loads(raw[8:end]).items() if name != "__metadata__"}

got = tensors(sys.argv[1])
start = tensors(sys.argv[2]) if len(sys.argv) > 2 else got
for name in (name for name in got if f"trained.{name}" in got):
    trained = got[f"trained.{name}"]
    print(name, np.abs(got[name] - trained).max(), np.abs(trained - start[name]).max())
END
}

# A net with a dense layer that is large enough to be joined: large.net.
write_large_net() {
    cat >large.net <<'END'
input 1x24x24 ops='resize 24x24; scale 1/255'
dense d1 units=512 act=relu
softmax  units=3
END
}
