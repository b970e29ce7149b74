"""Operations on pictures beside PIL's, or beside their formulas in numpy: ops_reference.py TEST.

Run in an empty folder, with adam-prep in PATH.
"""
import colorsys
import subprocess
import sys

import numpy as np
from PIL import Image, ImageOps


def applied(pictures, chain, seed=0):
    """What adam-prep makes of pictures: N x HEIGHT x WIDTH, or N x HEIGHT x WIDTH x CHANNELS."""
    np.save("in.npy", pictures)
    subprocess.run(
        ["adam-prep", "in.npy", "-q", "-f", "--on-error", "stop", "--ops", chain, "--seed", str(seed), "-o", "out.npy"],
        check=True,
    )
    result = np.load("out.npy")
    return result if result.ndim == pictures.ndim else result[..., np.newaxis]


def some_pictures(channels=3, n=4, height=29, width=37, seed=1):
    """Smooth noise that does not use the full range, and a picture of one colour."""
    r = np.random.default_rng(seed)
    small = r.integers(20, 230, (n, 8, 9, channels), dtype=np.uint8)
    pictures = np.empty((n, height, width, channels), np.uint8)
    for i in range(n):
        for c in range(channels):
            large = Image.fromarray(small[i, :, :, c]).resize((width, height), Image.BICUBIC)
            pictures[i, :, :, c] = large
    pictures[-1] = 77
    return pictures


def by_pil(pictures, function):
    """function(PIL image) for each channel by itself, or for RGB pictures as such."""
    if pictures.shape[-1] == 3:
        return np.stack([np.asarray(function(Image.fromarray(p))) for p in pictures])
    planes = [[np.asarray(function(Image.fromarray(p[:, :, c]))) for c in range(p.shape[-1])] for p in pictures]
    return np.moveaxis(np.array(planes), 1, -1)


def check_near(what, ours, wanted, most):
    worst = np.abs(ours.astype(float) - wanted.astype(float)).max()
    assert ours.shape == wanted.shape, (what, ours.shape, wanted.shape)
    assert worst <= most, f"{what}: off by {worst}, {most} is allowed"


def check_uniform(what, values, low, high):
    """Ends nearly reached and never passed, mean and deviation as they must be."""
    width = high - low
    found = (values.min(), values.max(), values.mean(), values.std())
    wanted = (low, high, (low + high) / 2, width / 12**0.5)
    assert np.abs(np.array(found) - wanted).max() < 0.03 * width, (what, found, wanted)


def levels():
    for channels in (1, 3, 5):
        p = some_pictures(channels)
        for bits in (1, 3, 4, 8):
            check_near("posterize", applied(p, f"posterize {bits}"), by_pil(p, lambda i: ImageOps.posterize(i, bits)), 0)
        for share in (0, 0.25, 0.5, 1):
            wanted = by_pil(p, lambda i: ImageOps.solarize(i, int(np.ceil(255 * share))))
            check_near("solarize", applied(p, f"solarize {share}"), wanted, 0)
        check_near("equalize", applied(p, "equalize"), by_pil(p, ImageOps.equalize), 0)
        # PIL cuts what we round.
        check_near("autocontrast", applied(p, "autocontrast"), by_pil(p, ImageOps.autocontrast), 1)
        stretched = applied(p[:-1], "autocontrast")
        assert (stretched.min((1, 2)) == 0).all() and (stretched.max((1, 2)) == 255).all()
        # What waits is done before, and geometry behind.
        check_near("a chain", applied(p, "invert; posterize 2; hflip"),
                   by_pil(255 - p, lambda i: ImageOps.posterize(i, 2))[:, :, ::-1], 0)
    f = (some_pictures() / 255).astype(np.float32)
    check_near("solarize", applied(f, "solarize 0.5"), np.where(f >= 0.5, 1 - f, f), 1e-6)
    low, high = f.min((1, 2), keepdims=True), f.max((1, 2), keepdims=True)
    wanted = (f - low)[:-1] / (high - low)[:-1]
    check_near("autocontrast", applied(f, "autocontrast"), np.concatenate([wanted, f[-1:]]), 1e-6)
    # Thresholds are uniform: a picture of one value is inverted when the threshold is not above it.
    same = np.full((3000, 1, 1), 128, np.uint8)
    share = (applied(same, "solarize 0.4..0.9") == 127).mean()
    assert abs(share - (128 / 255 - 0.4) / 0.5) < 0.04, share


def turned(pixel, degrees, full):
    """A pixel's hue turned by Python's own colorsys."""
    h, s, v = colorsys.rgb_to_hsv(*(c / full for c in pixel))
    return [full * c for c in colorsys.hsv_to_rgb((h + degrees / 360) % 1, s, v)]


def hue():
    p = np.random.default_rng(2).integers(0, 256, (2, 20, 31, 3), dtype=np.uint8)
    p[0, 0, :4] = [[255, 0, 0], [0, 255, 255], [9, 9, 9], [0, 0, 0]]
    for degrees in (-180, -77.5, -20, 1, 60, 120, 180):
        wanted = np.apply_along_axis(turned, 3, p.astype(float), degrees, 255)
        check_near(f"hue {degrees}", applied(p, f"hue ={degrees}"), wanted, 0.5 + 1e-3)
        f = (p / 255).astype(np.float32)
        wanted = np.apply_along_axis(turned, 3, f.astype(float), degrees, 1)
        check_near(f"hue {degrees}", applied(f, f"hue ={degrees}"), wanted, 1e-5)
    for channels in (1, 2, 4):
        p = some_pictures(channels)
        assert (applied(p, "hue =50") == p).all()
    # Angles are uniform: of a red picture, 60 degrees are the whole range of green or of blue.
    red = np.zeros((3000, 1, 1, 3), np.uint8)
    red[..., 0] = 255
    out = applied(red, "hue 40").reshape(-1, 3).astype(float)
    assert (out[:, 0] == 255).all() and (out[:, 1:].min(1) == 0).all()
    check_uniform("hue 40", (out[:, 1] - out[:, 2]) / 255 * 60, -40, 40)


globals()[sys.argv[1]]()
