# The same as `images prepare` by PIL with draft (DCT-scaled) decoding:
#   images_pil.py PROCESSES SECONDS FOLDER
# Prints pictures per second, and per second of processor time and process.
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
    start = time.process_time()
    while time.monotonic() < end:
        prepare(files[(first + count * processes) % len(files)])
        count += 1
    done.put((count, time.process_time() - start))


done = multiprocessing.Queue()
start = time.monotonic()
workers = [multiprocessing.Process(target=work, args=(i, start + seconds, done))
           for i in range(processes)]
for worker in workers:
    worker.start()
results = [done.get() for _ in workers]
pictures = sum(count for count, _ in results)
busy = sum(seconds for _, seconds in results) / processes
print('%.1f %.1f' % (pictures / (time.monotonic() - start), pictures / busy))
for worker in workers:
    worker.join()
