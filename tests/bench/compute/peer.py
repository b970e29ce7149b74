"""PyTorch as fast as it is known to run on this machine.

- One OpenBLAS kernel family may be twice as fast as the one that OpenBLAS takes by
  itself, or that some setting of the environment forces: they are tried.
- OpenBLAS of Debian's OpenMP flavour, where it is installed: that of its own threads
  fights with PyTorch's at two threads and more.
- Memory stays with malloc: giving it back to the kernel costs page faults in each step.
- channels_last where it is faster (torch_steps.py tries).
"""
import functools
import glob
import os
import subprocess

import turns

KEEP_MEMORY = {'MALLOC_MMAP_THRESHOLD_': '8000000000', 'MALLOC_TRIM_THRESHOLD_': '16000000000',
               'MALLOC_TOP_PAD_': '268435456'}
FAMILIES = ('', 'Haswell', 'Zen', 'SkylakeX', 'Cooperlake')  # '': the one it takes itself
PRODUCT = '''
import ctypes, time
m, n, k, one, zero = 256, 2048, 2048, ctypes.c_float(1), ctypes.c_float(0)
blas = ctypes.CDLL('libopenblas.so.0')
a, b, c = ((ctypes.c_float * size)() for size in (m * k, k * n, m * n))
best = 1e9
for _ in range(12):
    begin = time.process_time()
    blas.cblas_sgemm(101, 111, 111, m, n, k, one, a, k, b, n, zero, c, n)
    best = min(best, time.process_time() - begin)
print(best)
'''


def environment(threads, family, keep_memory=True):
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(('OPENBLAS_', 'OMP_', 'MALLOC_'))}
    env |= {'OMP_NUM_THREADS': str(threads), 'OPENBLAS_NUM_THREADS': str(threads),
            'PYTHONDONTWRITEBYTECODE': '1'}
    if family:
        env['OPENBLAS_CORETYPE'] = family
    if keep_memory:
        env |= KEEP_MEMORY
    flavour = glob.glob('/usr/lib/*/openblas-openmp')
    if flavour:
        env['LD_LIBRARY_PATH'] = flavour[0]
    return env


def product_seconds(family):
    """What a matrix product takes with these kernels; inf where they do not run."""
    run = subprocess.run([turns.PYTHON, '-c', PRODUCT], env=environment(1, family), check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(run.stdout) if run.returncode == 0 else float('inf')


@functools.cache
def best_family():
    """Another than its own choice only where that is clearly faster."""
    seconds = {family: product_seconds(family) for family in FAMILIES}
    best = min(FAMILIES, key=seconds.get)
    return best if seconds[best] < 0.95 * seconds[''] else ''


@functools.cache
def version():
    """PyTorch's version; None: it is not installed."""
    run = subprocess.run([turns.PYTHON, '-c', 'import torch; print(torch.__version__)'],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None


def steps(mode, net, batch, threads=1, hogwild=False, layout='best', keep_memory=True):
    """PyTorch's turns; None where it is not installed."""
    if not version():
        return None
    command = [turns.PYTHON, f'{turns.HERE}/torch_steps.py', mode, turns.model_file(net),
               str(batch), layout, str(threads)] + ['hogwild'] * hogwild
    env = environment(1 if hogwild else threads, best_family(), keep_memory)
    return turns.Turner(*command, env=env)


def about():
    if not version():
        return 'skip: no PyTorch (python3-torch) to measure against'
    return f'PyTorch {version()}, OpenBLAS kernels {best_family() or "of its own choice"}'
