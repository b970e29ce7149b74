# The same as `images prepare` by PIL with draft (DCT-scaled) decoding:
#   images_pil.py PROCESSES SECONDS FOLDER
# Prints pictures per second.
import io, multiprocessing, os, sys, time
from PIL import Image

SIDE = 256
processes, seconds, folder = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
files = []
for name in sorted(os.listdir(folder)):
    with open(os.path.join(folder, name), 'rb') as f:
        data = f.read()
    if data[:3] == b'\xff\xd8\xff':
        files.append(data)


def prepare(data):
    image = Image.open(io.BytesIO(data))
    image.draft('RGB', (SIDE, SIDE))
    image = image.convert('RGB')
    shorter = min(image.size)
    width, height = (round(side * SIDE / shorter) for side in image.size)
    image = image.resize((width, height), Image.BILINEAR)
    left, top = (width - SIDE) // 2, (height - SIDE) // 2
    return image.crop((left, top, left + SIDE, top + SIDE)).tobytes()


def work(first, end, done):
    count = 0
    while time.monotonic() < end:
        prepare(files[(first + count * processes) % len(files)])
        count += 1
    done.put(count)


done = multiprocessing.Queue()
start = time.monotonic()
workers = [multiprocessing.Process(target=work, args=(i, start + seconds, done))
           for i in range(processes)]
for worker in workers:
    worker.start()
total = sum(done.get() for _ in workers)
print('%.1f' % (total / (time.monotonic() - start)))
for worker in workers:
    worker.join()
