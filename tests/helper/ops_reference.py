"""Operations on pictures beside PIL's, or beside their formulas in numpy: ops_reference.py TEST.

Run in an empty folder, with adam-prep in PATH.
"""
import colorsys
import subprocess
import sys

import numpy as np
from PIL import Image, ImageEnhance, ImageOps


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


def check_uniform(what, values, low, high, slack=0.03):
    """Ends nearly reached and never passed, mean and deviation as they must be, to a share of the range."""
    width = high - low
    found = (values.min(), values.max(), values.mean(), values.std())
    wanted = (low, high, (low + high) / 2, width / 12**0.5)
    assert np.abs(np.array(found) - wanted).max() < slack * width, (what, found, wanted)


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


def blurred(p, sigma):
    """A Gaussian over three deviations and a mirrored border, in doubles."""
    radius = int(np.ceil(3 * sigma))
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    p = p.astype(float)
    for axis in (1, 2):
        around = [(radius, radius) if i == axis else (0, 0) for i in range(p.ndim)]
        padded = np.pad(p, around, "symmetric")
        p = sum(w * padded.take(range(k, k + p.shape[axis]), axis) for k, w in enumerate(weights))
    return p


def blur():
    for channels in (1, 3, 4):
        p = some_pictures(channels, height=17, width=23)
        for sigma in (0.1, 0.5, 1.7, 6, 40):
            check_near(f"blur {sigma}", applied(p, f"blur {sigma}"), blurred(p, sigma), 0.5 + 1e-3)
        f = (p / 255).astype(np.float32)
        check_near("blur", applied(f, "blur 1.5"), blurred(f, 1.5), 1e-5)
    one = np.array([[[9]], [[200]]], np.uint8)
    assert (applied(one, "blur 2") == one).all()
    # Deviations are uniform: a point keeps less the wider it is smeared.
    points = np.zeros((2000, 31, 31), np.float32)
    points[:, 15, 15] = 1
    left = applied(points, "blur 1..4")[:, 15, 15]
    sigmas = np.linspace(1, 4, 400)
    peaks = [blurred(points[:1], s)[0, 15, 15] for s in sigmas]
    check_uniform("blur 1..4", np.interp(-left, -np.array(peaks), sigmas), 1, 4)


def sharpness():
    for channels in (1, 3, 4):
        p = some_pictures(channels)
        for factor in (0, 0.3, 1, 1.9, 5):
            wanted = by_pil(p, lambda i: ImageEnhance.Sharpness(i).enhance(factor))
            # PIL rounds the smoothed picture, and cuts the result.
            check_near(f"sharpness {factor}", applied(p, f"sharpness ={factor}"), wanted, 1 + 0.5 * abs(1 - factor))
    f = (p / 255).astype(np.float32)
    weights = np.ones((3, 3))
    weights[1, 1] = 5
    smooth = f.astype(float)
    smooth[:, 1:-1, 1:-1] = sum(
        weights[y, x] / 13 * f[:, y : f.shape[1] - 2 + y, x : f.shape[2] - 2 + x] for y in range(3) for x in range(3)
    )
    check_near("sharpness", applied(f, "sharpness =2.5"), smooth + 2.5 * (f - smooth), 1e-5)
    for shape in ((2, 1, 1), (2, 2, 9), (2, 9, 2)):
        small = np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)
        assert (applied(small, "sharpness =3") == small).all()
    points = np.zeros((3000, 3, 3), np.float32)
    points[:, 1, 1] = 13
    check_uniform("sharpness 0.5", (applied(points, "sharpness 0.5")[:, 1, 1] - 5) / 8, 0.5, 1.5)


def rectangles(changed):
    """Left, top, width and height of what changed in each picture, which must be a rectangle; 0 of nothing."""
    found = []
    for picture in changed:
        ys, xs = np.nonzero(picture)
        box = (xs.min(), ys.min(), np.ptp(xs) + 1, np.ptp(ys) + 1) if len(xs) else (0, 0, 0, 0)
        assert len(xs) == box[2] * box[3]
        found.append(box)
    return np.array(found).T


def erase():
    n, height, width = 3000, 60, 80
    plain = np.full((n, height, width), 100, np.uint8)
    # Of one size, all places are equally likely.
    out = applied(plain, "erase area=0.1 aspect=1.25 fill=7")
    assert set(np.unique(out)) == {7, 100}
    left, top, w, h = rectangles(out == 7)
    assert (w == np.rint((480 / 1.25) ** 0.5)).all() and (h == np.rint((480 * 1.25) ** 0.5)).all()
    check_uniform("left", left, 0, width - w[0])
    check_uniform("top", top, 0, height - h[0])
    # Areas and aspects are uniform, as far as whole pixels tell.
    left, top, w, h = rectangles(applied(plain, "erase area=0.1..0.2 aspect=0.5..1.5") == 0)
    check_uniform("area", w * h / (width * height), 0.1, 0.2, 0.08)
    check_uniform("aspect", h / w, 0.5, 1.5, 0.08)
    # By default small and large ones, some of which touch an edge; all fit at some time.
    left, top, w, h = rectangles(applied(plain, "erase") == 0)
    assert (w > 0).all() and (w * h / (width * height)).max() < 0.41 and max((h / w).max(), (w / h).max()) < 3.9
    # What can never fit leaves the picture; what just fits is all of it.
    assert (applied(plain[:9], "erase area=1 aspect=1") == 100).all()
    assert (applied(plain[:9], "erase area=1 aspect=0.75") == 0).all()
    share = (applied(plain, "erase p=0.3") == 0).any((1, 2)).mean()
    assert abs(share - 0.3) < 0.04, share
    # Noise is uniform, on bytes and on floats, in each channel by itself.
    colours = np.full((40, height, width, 3), 300, np.float32)
    for full, pictures in ((255, colours.astype(np.uint8)), (1, colours)):
        out = applied(pictures, "erase noise area=0.2")
        for c in range(3):
            values = out[..., c][out[..., c] != pictures[0, 0, 0, 0]]
            assert len(values) > 30 * 0.2 * width * height
            check_uniform("noise", values.astype(float), 0, full)
        assert (out[..., 0] != out[..., 1]).mean() > 0.15


def coordinates(n, height, width):
    """Pictures of two channels: where a pixel is, from left and from top."""
    y, x = np.mgrid[:height, :width]
    return np.repeat(np.stack([x, y], -1)[np.newaxis], n, 0).astype(np.float32)


def projection(result, source):
    """The eight numbers of the projective map of points of the result to points of the source, by least squares."""
    x, y = result.T
    u, v = source.T
    o, i = np.zeros_like(x), np.ones_like(x)
    rows = np.concatenate([np.stack([x, y, i, o, o, o, -u * x, -u * y], 1),
                           np.stack([o, o, o, x, y, i, -v * x, -v * y], 1)])
    return np.linalg.lstsq(rows, np.concatenate([u, v]), rcond=None)[0]


def project(m, points):
    m = np.append(m, 1).reshape(3, 3)
    p = np.concatenate([points, np.ones((len(points), 1))], 1) @ m.T
    return p[:, :2] / p[:, 2:]


def perspective():
    n, height, width = 400, 40, 60
    moved = applied(coordinates(n, height, width), "perspective 0.5 fill=-1000")
    # Pixels none of whose neighbours is mixed with what is outside.
    seen = np.pad((moved >= 0).all(-1), ((0, 0), (1, 1), (1, 1)))
    inside = np.all([seen[:, y : y + height, x : x + width] for y in range(3) for x in range(3)], 0)
    places = coordinates(1, height, width)[0].astype(float)
    edges = np.array([[-0.5, -0.5], [width - 0.5, -0.5], [width - 0.5, height - 0.5], [-0.5, height - 0.5]])
    corners, maps = [], []
    for picture, where in zip(moved, inside):
        maps.append(projection(places[where], picture[where].astype(float)))
        assert np.abs(project(maps[-1], places[where]) - picture[where]).max() < 2e-3
        inverse = np.linalg.inv(np.append(maps[-1], 1).reshape(3, 3))
        corners.append(project((inverse / inverse[2, 2]).ravel()[:8], edges))
    inwards = np.abs(np.array(corners) - edges) / (width / 2, height / 2)
    for corner in range(4):
        for axis in range(2):
            check_uniform(f"corner {corner}", inwards[:, corner, axis], 0, 0.5, 0.06)
    # Each is drawn by itself.
    assert np.abs(np.corrcoef(inwards.reshape(n, 8).T) - np.eye(8)).max() < 0.25
    # A picture follows its map, as PIL sees it.
    p = some_pictures(3, n, height, width)
    ours = applied(p, "perspective 0.5")
    for i in range(50):
        # PIL has the middle of a pixel at a half.
        half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        m = half @ np.append(maps[i], 1).reshape(3, 3) @ np.linalg.inv(half)
        picture = Image.fromarray(p[i]).transform((width, height), Image.PERSPECTIVE, (m / m[2, 2]).ravel()[:8], Image.BILINEAR)
        check_near("perspective", ours[i][inside[i]], np.asarray(picture)[inside[i]], 2)
        assert (ours[i][moved[i].max(-1) == -1000] == 0).all()
    share = (applied(coordinates(3000, 4, 4), "perspective 0.5 p=0.3") != coordinates(1, 4, 4)).any((1, 2, 3)).mean()
    assert abs(share - 0.3) < 0.04, share


globals()[sys.argv[1]]()
