"""Callers of a prediction service (adam-eval --listen) who do what curl does not.

service.py together URL FILE N [PID]  sends N pictures on as many connections; with a process, it is
                                      stopped meanwhile, and goes on when all are sent
service.py slow URL WHAT              sends part of a request, then WHAT: nothing, or bytes for 'line',
                                      'head' or 'body' one after the other; or is silent from the
                                      beginning; prints the answer
service.py cut URL                    sends half of a body, and goes
service.py crowd URL N                opens N connections that say nothing, prints "open", and keeps
                                      them until it is ended
service.py deaf URL N                 asks for the page N times, prints "asked", and never reads
service.py last URL FILE PID          sends a picture to the process that is stopped, and SIGTERM;
                                      lets it go on, and prints the answer
service.py line URL FILE PID N        the same of N callers, each on a connection: prints how many are
                                      answered
service.py queue FILE N COMMAND...    the same of a socket as systemd has it, and a successor that
                                      begins when the first has ended
service.py handover FILE COMMAND...   as systemd has it: one socket, a process of COMMAND, then
                                      another, while callers ask; prints how many were answered
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request


def call(url):
    at = urllib.parse.urlsplit(url)
    return socket.create_connection((at.hostname, at.port), timeout=30)


def request(bytes_):
    return b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(bytes_) + bytes_


def answer(sock):
    """Status and text of one answer, or of what there is when the connection ends."""
    got = b""
    while True:
        head, _, text = got.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:") and len(text) >= int(line.split(b":")[1]):
                return int(head.split()[1]), text.decode()
        more = sock.recv(65536)
        if not more:
            return 0, got.decode()
        got += more


def together(url, path, count, pid=None):
    picture = open(path, "rb").read()
    if pid:
        os.kill(int(pid), signal.SIGSTOP)
    socks = [call(url) for _ in range(int(count))]
    for sock in socks:
        sock.sendall(request(picture))
    if pid:
        os.kill(int(pid), signal.SIGCONT)
    answers = [answer(sock) for sock in socks]
    assert all(code == 200 for code, _ in answers), answers
    print(len(answers))


def slow(url, what):
    sock = call(url)
    line, length = b"POST /predict HTTP/1.1\r\nHost: x\r\n", b"Content-Length: 100000\r\n\r\n"
    sock.sendall({"silent": b"", "line": b"POST /", "head": line}.get(what, line + length))
    answers = []
    reader = threading.Thread(target=lambda: answers.append(answer(sock)))
    reader.start()
    while reader.is_alive() and what not in ("nothing", "silent"):
        try:
            sock.sendall(b"X")
        except OSError:
            break
        reader.join(0.05)
    reader.join()
    print(*answers[0])


def cut(url):
    sock = call(url)
    sock.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"X" * 500)
    sock.close()


def crowd(url, count):
    socks = [call(url) for _ in range(int(count))]
    print("open", flush=True)
    signal.pause()
    del socks


def deaf(url, count):
    at = urllib.parse.urlsplit(url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((at.hostname, at.port))
    sock.settimeout(1)
    try:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * int(count))
    except OSError:
        pass  # nor does the service read any more
    print("asked", flush=True)
    signal.pause()


def last(url, path, pid):
    os.kill(int(pid), signal.SIGSTOP)
    sock = call(url)
    sock.sendall(request(open(path, "rb").read()))
    os.kill(int(pid), signal.SIGTERM)
    os.kill(int(pid), signal.SIGCONT)
    print(*answer(sock))


def stop_behind(socks, path, pid):
    """Requests wait in line when the process, which was stopped, hears of SIGTERM."""
    for sock in socks:
        sock.sendall(request(open(path, "rb").read()))
    os.kill(int(pid), signal.SIGTERM)
    os.kill(int(pid), signal.SIGCONT)


def count_answered(socks):
    count = 0
    for sock in socks:
        try:
            count += answer(sock)[0] == 200
        except OSError as error:
            print(error)
    return count


def line(url, path, pid, count):
    os.kill(int(pid), signal.SIGSTOP)
    socks = [call(url) for _ in range(int(count))]
    stop_behind(socks, path, pid)
    print(count_answered(socks))


def queue(path, count, *command):
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
    first = start(listener, command)
    sock = call(url)
    sock.sendall(request(open(path, "rb").read()))
    assert answer(sock)[0] == 200
    first.send_signal(signal.SIGSTOP)
    socks = [call(url) for _ in range(int(count))]
    stop_behind(socks, path, first.pid)
    assert first.wait() == 0
    second = start(listener, command)
    print(count_answered(socks))
    second.terminate()
    assert second.wait() == 0


def start(listener, command):
    """A process that has the socket as descriptor 3."""
    return subprocess.Popen(
        ["sh", "-c", 'exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<&%d' % listener.fileno(), "sh", *command],
        pass_fds=[listener.fileno()])


def handover(path, *command):
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
    picture = open(path, "rb").read()
    counts, ends = [0, 0], threading.Event()

    def ask_on():
        while not ends.is_set():
            good = 0
            try:
                sock = call(url)
                sock.sendall(request(picture))
                good = answer(sock)[0] == 200
            except OSError as error:
                print(error)
            counts[0 if good else 1] += 1

    def wait_for_more():
        before = counts[0]
        while counts[0] < before + 50:
            time.sleep(0.01)

    callers = [threading.Thread(target=ask_on) for _ in range(4)]
    first = start(listener, command)
    for caller in callers:
        caller.start()
    wait_for_more()
    second = start(listener, command)
    first.terminate()
    wait_for_more()
    assert first.wait() == 0
    wait_for_more()
    ends.set()
    for caller in callers:
        caller.join()
    second.terminate()
    assert second.wait() == 0
    print("answered", counts[0] >= 150, "lost", counts[1])


globals()[sys.argv[1]](*sys.argv[2:])
