"""A switch that takes its time: slow_switch.py MACHINES MILLISECONDS

Makes the network devices slow1, slow2... Each frame that goes into one comes out at those that
it is for, so many milliseconds later. Says "ready" when they are there; ends when stdin does.
"""
import fcntl
import heapq
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000


def open_port(n):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", b"slow%d" % n, IFF_TAP | IFF_NO_PI))
    return fd


def main():
    machines, delay = int(sys.argv[1]), float(sys.argv[2]) / 1000
    ports = [open_port(n + 1) for n in range(machines)]
    print("ready", flush=True)
    homes = {}  # of hardware addresses
    late = []  # (when, number, from, frame)
    number = 0
    while True:
        left = max(0, late[0][0] - time.monotonic()) if late else None
        readable = select.select(ports + [0], [], [], left)[0]
        if 0 in readable and not os.read(0, 4096):
            return
        for fd in readable:
            if fd != 0:
                frame = os.read(fd, 65536)
                homes[frame[6:12]] = fd
                number += 1
                heapq.heappush(late, (time.monotonic() + delay, number, fd, frame))
        while late and late[0][0] <= time.monotonic():
            _, _, source, frame = heapq.heappop(late)
            home = homes.get(frame[:6])
            for fd in ports if home is None else [home]:
                if fd != source:
                    try:
                        os.write(fd, frame)
                    except OSError:
                        pass  # a device that is down loses it, as cables do


main()
