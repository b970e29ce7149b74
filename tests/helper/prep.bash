# For the tests of adam-prep: small sets of pictures made by other hands.

# photos/CLASS/*.jpg,png of three classes, with 3, 5 and 8 pictures.
make_photos() {
    python - <<'END'
import os
import numpy as np
from PIL import Image

r = np.random.default_rng(5)
for name, count in (("ant", 3), ("bee", 5), ("cow", 8)):
    os.makedirs(f"photos/{name}")
    for i in range(count):
        small = Image.fromarray(r.integers(0, 256, (6, 8, 3), dtype=np.uint8))
        picture = small.resize((40 + i, 30), Image.BICUBIC)
        picture.save(f"photos/{name}/{i}.{'png' if i % 2 else 'jpg'}")
END
}

# The keys of a data set in order, and "KEY CLASS" lines: by way of tar.
keys() {
    adam-prep "$@" -q --to tar -o - | tar tf - | sed -n 's/\.cls$//p'
}

labelled() {
    adam-prep "$@" -q --to tar -o labelled.tar -f
    rm -rf unpacked && mkdir unpacked && tar xf labelled.tar -C unpacked
    (cd unpacked && find . -name '*.cls' -printf '%P\n' | while read -r file; do
        printf '%s %s\n' "${file%.cls}" "$(cat "$file")"
    done) | sort
}

# One number of adam-prep stat: a jq expression behind the inputs.
stat_of() {
    adam-prep stat -q --json "${@:1:$#-1}" | jq -r "${!#}"
}
