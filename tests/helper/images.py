# PIL's opinion on decoding and resizing, for tests/cli/images.bats:
#   images.py CHECK FOLDER      every check is a function below; status 1 and a line on failure
# HELPER names the program that runs pictures through the library.
import io, os, subprocess, sys

import numpy as np
from PIL import Image, ImageOps

helper = os.environ['HELPER']
FILTERS = {'area': Image.BOX, 'bilinear': Image.BILINEAR, 'lanczos': Image.LANCZOS}


def run(data, *arguments):
    done = subprocess.run([helper, *map(str, arguments)], input=data, capture_output=True)
    assert done.returncode == 0, (arguments, done.stderr)
    assert done.stderr == b'', done.stderr
    return done.stdout


def picture(data, *arguments):
    return np.asarray(Image.open(io.BytesIO(run(data, *arguments))))


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def same(ours, theirs, tolerance, what):
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    worst = np.abs(ours.astype(float) - theirs).max()
    assert worst <= tolerance, (what, 'differs by', worst)


# Edges, gradients and noise: what resampling and JPEG get wrong.
def drawn(width=171, height=122):
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.RandomState(5).randint(0, 256, (height, width))
    red = np.where((x // 13 + y // 7) % 2, 255, 0)
    green = (x * 255 // width + y * 255 // height) // 2
    blue = np.where(x > width // 2, noise, 40 + 100 * (np.hypot(x - 40, y - 60) < 30))
    return Image.fromarray(np.stack([red, green, blue], 2).astype(np.uint8))


def upright(data):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return np.asarray(image if image.mode in ('L', 'RGB') else image.convert('RGB'))


def jpeg(_):
    image = drawn()
    for mode in 'RGB', 'L', 'CMYK':
        for progressive in False, True:
            for subsampling in (0, 1, 2) if mode == 'RGB' else (0,):
                data = encoded(image.convert(mode), 'jpeg', quality=80, progressive=progressive,
                               subsampling=subsampling)
                same(picture(data, 'decode'), upright(data), 0, (mode, progressive, subsampling))


def exif(_):
    for orientation in range(1, 9):
        tags = Image.Exif()
        tags[0x0112] = orientation
        for kind in 'jpeg', 'png':
            data = encoded(drawn(), kind, exif=tags)
            same(picture(data, 'decode'), upright(data), 0, (kind, orientation))


def png(_):
    image = drawn()
    alpha = Image.fromarray((np.asarray(image)[:, :, 1]))
    for mode in '1', 'L', 'LA', 'P', 'RGB', 'RGBA':
        pixels = image.convert(mode)
        if mode in ('LA', 'RGBA'):
            pixels.putalpha(alpha)
        white = Image.new('RGBA', image.size, 'white')
        theirs = Image.alpha_composite(white, pixels.convert('RGBA')).convert('RGB')
        if mode in ('1', 'L', 'LA'):
            theirs = theirs.getchannel(0)
        same(picture(encoded(pixels, 'png'), 'decode'), np.asarray(theirs), 1, mode)
    indexed = image.quantize(8)
    data = encoded(indexed, 'png', transparency=bytes(range(0, 256, 32)), optimize=True)
    theirs = Image.alpha_composite(white, Image.open(io.BytesIO(data)).convert('RGBA'))
    same(picture(data, 'decode'), np.asarray(theirs.convert('RGB')), 1, 'transparent palette')


def encode(_):
    for mode in 'L', 'RGB':
        image = drawn().convert(mode)
        ppm = encoded(image, 'ppm')
        for kind in 'png', 'ppm':
            theirs = np.asarray(Image.open(io.BytesIO(run(ppm, 'encode', kind))))
            same(np.asarray(image), theirs, 0, kind)
        smooth = image.resize((40, 30), Image.BICUBIC)
        written = Image.open(io.BytesIO(run(encoded(smooth, 'ppm'), 'encode', 'jpg', 100)))
        same(np.asarray(smooth), np.asarray(written), 6, 'jpg')
        assert written.mode == mode


def sizes(image):
    width, height = image.size
    return (64, 64), (width // 2, height // 3), (width * 2, height + 17), (7, 5), (1, height), (
        width, height)


# PIL in floats does not clamp between its two passes, which is what we promise; its
# 8-bit pictures do, so Lanczos differs there where it overshoots.
def in_floats(image, size, resample):
    bands = [np.asarray(band.convert('F').resize(size, resample)) for band in image.split()]
    return np.stack(bands, 2).clip(0, 255)


# PIL's box takes or leaves whole pixels. The exact mean of what a result covers comes
# from it all the same, when every pixel is first repeated as often as the result is wide.
def mean(image, size):
    width, height = image.size
    many = np.asarray(image).repeat(size[0], 1).repeat(size[1], 0).astype(float)
    return many.reshape(size[1], height, size[0], width, 3).mean((1, 3))


def check_sizes(image, tolerance=0.53):
    ppm = encoded(image, 'ppm')
    for size in sizes(image):
        for name in 'bilinear', 'lanczos':
            same(picture(ppm, 'resize', name, *size), in_floats(image, size, FILTERS[name]),
                 tolerance, (name, size))
        same(picture(ppm, 'resize', 'bilinear', *size),
             np.asarray(image.resize(size, Image.BILINEAR)), 1, ('bilinear in 8 bits', size))


def resize(_):
    check_sizes(drawn())
    image = drawn(60, 42)
    for size in (13, 11), (30, 14), (60, 42), (90, 50), (1, 1):
        same(picture(encoded(image, 'ppm'), 'resize', 'area', *size), mean(image, size), 0.53,
             ('area', size))
    for size in (20, 21), (6, 7), (60, 1):
        same(picture(encoded(image, 'ppm'), 'resize', 'area', *size),
             np.asarray(image.resize(size, Image.BOX)), 1, ('box', size))


def part(_):
    image = drawn()
    left, top, width, height = 20, 11, 50, 33
    theirs = image.resize((101, 80), Image.BILINEAR).crop((left, top, left + width, top + height))
    same(picture(encoded(image, 'ppm'), 'resize', 'bilinear', 101, 80, left, top, width, height),
         np.asarray(theirs), 1, 'part')


def floats(_):
    image = drawn().convert('L')
    for name in 'bilinear', 'lanczos':
        raw = run(encoded(image, 'ppm'), 'floats', name, 50, 61)
        ours = np.frombuffer(raw, np.float32).reshape(61, 50)
        same(ours, np.asarray(image.convert('F').resize((50, 61), FILTERS[name])), 1e-3, name)


def scaled(_):
    image = drawn(400, 304)
    data = encoded(image, 'jpeg', quality=90)
    for least in (200, 152), (100, 76), (50, 38), (101, 1):
        theirs = Image.open(io.BytesIO(data))
        theirs.draft('RGB', least)
        same(picture(data, 'decode', 0, *least), np.asarray(theirs), 0, least)


def photographs(folder):
    for number, name in enumerate(sorted(os.listdir(folder))):
        with open(os.path.join(folder, name), 'rb') as f:
            data = f.read()
        same(picture(data, 'decode'), upright(data), 0, name)
        if number % 40 == 0:
            check_sizes(Image.open(io.BytesIO(data)).convert('RGB'))


globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None)
