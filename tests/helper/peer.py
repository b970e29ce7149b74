# A peer that speaks adam-protocol(5) badly, for tests of who must bear it.
#
#   peer.py silent ADDRESS COUNT SECONDS   so many connections that say nothing; each that is
#                                          closed is dialled again
#   peer.py greet ADDRESS COUNT SECONDS    the same, but each says a valid hello, and pings
#   peer.py thief ADDRESS SESSION          pushes of zeros to shard 0 as this session, of a
#                                          number far ahead: prints the answers
#   peer.py push ADDRESS SESSION VALUE RATE  a delta of this value to each float of shard 0, and
#                                          a gradient of zeros at this rate: prints the answers
#   peer.py impostor ADDRESS SESSION       asks in the name of this session without having
#                                          it: prints the answers
#   peer.py deaf ADDRESS SHARD COUNT       as many pulls of a shard as that, of which no
#                                          answer is read; prints when it is hung up on
#   peer.py huge ADDRESS PIECES            one pull of so many whole shards: prints the answer
#   peer.py nuisance ADDRESS               connections that say nothing, noise, and requests that are
#                                          malformed, of the wrong role, or of who is gone when the
#                                          answer comes: prints the answers
#   peer.py full ADDRESS COUNT             listens, and prints where: hangs up on so many callers
#                                          without a word, and passes the next one on to ADDRESS
import os
import select
import socket
import struct
import sys
import time

FRAME = struct.Struct("<4sHHQII")
VERSION = None
PING, LEAVE, HEARTBEAT, LEASE, FINISH, REPORT = 0x0102, 0x0103, 0x0202, 0x0402, 0x0403, 0x0505
HELLO, PULL, PUSH, GET_VERSIONS, REFUSED = 0x0101, 0x0301, 0x0302, 0x0304, 0x8103
GET_ROUTES, SET, SAVE, STOP = 0x0203, 0x0502, 0x0503, 0x0504
WORKER, ADMINISTRATOR = 3, 5


def version():
    """That of the programs under test, as the page of the wire has it."""
    with open(sys.path[0] + "/../../lib/proto/messages.h", encoding="utf-8") as page:
        return int(next(line for line in page if line.startswith("#define PROTO_VERSION")).split()[2])


def dial(address):
    kind, _, rest = address.partition("://")
    if kind == "ipc":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(rest)
        return connection
    host, _, port = rest.rpartition(":")
    return socket.create_connection((host, int(port)))


def send(connection, kind, body, payload=b"", request=1):
    frame = FRAME.pack(b"adam", VERSION, kind, request, len(body), len(payload))
    connection.sendall(frame + body + payload)


def read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError("it hung up")
        data += more
    return data


def receive(connection):
    """The next answer: its number and body. Pings are passed over."""
    while True:
        _, _, kind, request, body, payload = FRAME.unpack(read(connection, FRAME.size))
        data = read(connection, body)
        read(connection, payload)
        if kind & 0x8000:
            return kind, data


def ask(connection, kind, body, payload=b""):
    send(connection, kind, body, payload)
    return receive(connection)


def name(kind, body):
    if kind != REFUSED:
        return "%#06x" % kind
    code, detail, length = struct.unpack_from("<HQI", body)
    return "refused %d %d %s" % (code, detail, body[14:14 + length].decode())


def hello_of(session, role=WORKER):
    return struct.pack("<H16sQQI4s", role, bytes(16), 0, session, 4, b"peer")


def hello(address, session, role=WORKER):
    connection = dial(address)
    kind, answer = ask(connection, HELLO, hello_of(session, role))
    if kind == REFUSED:
        sys.exit(name(kind, answer))
    return connection


def shards(connection):
    """Each shard that is there: number, floats, epoch, version."""
    _, body = ask(connection, GET_VERSIONS, struct.pack("<II", 0, 4096))
    return [(shard, count, epoch, clock) for shard, _, count, epoch, clock in
            struct.iter_unpack("<IIIQQ", body[4:])]


def piece(shard, count, epoch, clock):
    return struct.pack("<IIIQQ", shard, 0, count, epoch, clock)


def crowd(call, count, seconds, speak):
    """So many connections, each dialled again when it is closed; all speak every second."""
    end = time.monotonic() + float(seconds)
    there = [call() for _ in range(int(count))]
    print("there", flush=True)
    events, spoke = select.epoll(), time.monotonic()
    known = {connection.fileno(): connection for connection in there}
    for number in known:
        events.register(number, select.EPOLLIN)
    while time.monotonic() < end:
        lost = [number for number, _ in events.poll(0.1) if not hears(known[number])]
        if time.monotonic() > spoke + 1:
            spoke = time.monotonic()
            lost += [number for number, it in known.items() if number not in lost and not speak(it)]
        for number in lost:
            known.pop(number).close()
            try:
                connection = call()
            except OSError:
                time.sleep(0.01)
                continue
            known[connection.fileno()] = connection
            events.register(connection.fileno(), select.EPOLLIN)


def hears(connection):
    try:
        return bool(connection.recv(4096))
    except OSError:
        return False


def silent(address, count, seconds):
    crowd(lambda: dial(address), count, seconds, lambda connection: True)


def greet(address, count, seconds):
    def call():
        connection = dial(address)
        try:
            send(connection, HELLO, hello_of(0))
        except OSError:
            pass
        return connection

    def ping(connection):
        try:
            send(connection, PING, b"", request=0)
        except OSError:
            return False
        return True

    crowd(call, count, seconds, ping)


def thief(address, session):
    connection = hello(address, int(session))
    shard, count, epoch, clock = shards(connection)[0]
    push = struct.pack("<QQHIdI", int(session), 10 ** 9, 1, 1, 0.0, 1)
    push += piece(shard, count, epoch, clock)
    print(name(*ask(connection, PUSH, push, bytes(4 * count))))


def push(address, session, value, rate):
    connection = hello(address, int(session))
    shard, count, epoch, clock = shards(connection)[0]
    values = struct.pack("<f", float(value)) * count
    for sequence, kind, rate, data in ((10 ** 6, 1, 0.0, values),
                                       (10 ** 6 + 1, 0, float(rate), bytes(4 * count))):
        body = struct.pack("<QQHIdI", int(session), sequence, kind, 1, rate, 1)
        print(name(*ask(connection, PUSH, body + piece(shard, count, epoch, clock), data)))


def impostor(address, session):
    figures = struct.pack("<H7Q6dQdQI", 1, *7 * [0], *6 * [0.0], 0, 0.0, 0, 0)
    requests = {
        "leave": (LEAVE, struct.pack("<I3s", 3, b"bye")),
        "heartbeat": (HEARTBEAT, figures),
        "lease": (LEASE, struct.pack("<IIQQ", 0, 8, 0, 0)),
        "finish": (FINISH, struct.pack("<II", 0, 0)),
        "report": (REPORT, struct.pack("<I15s", 15, b'{"event":"nan"}')),
    }
    connection = hello(address, 0)
    for word, (kind, rest) in requests.items():
        print(word, name(*ask(connection, kind, struct.pack("<Q", int(session)) + rest)))


def deaf(address, shard, count):
    connection = hello(address, 0)
    _, floats, epoch, _ = shards(connection)[int(shard)]
    body = struct.pack("<QHQI", 0, 0, 0, 1) + piece(int(shard), floats, epoch, 0)
    for request in range(int(count)):
        try:
            send(connection, PULL, body, request=request + 1)
        except OSError:
            print("hung up on after", request, flush=True)
            return
    print("asked", flush=True)
    events = select.poll()
    events.register(connection, select.POLLRDHUP)
    events.poll()
    print("hung up on", flush=True)


def huge(address, pieces):
    connection = hello(address, 0)
    shard, floats, epoch, _ = shards(connection)[0]
    body = struct.pack("<QHQI", 0, 0, 0, int(pieces))
    body += int(pieces) * piece(shard, floats, epoch, 0)
    print(name(*ask(connection, PULL, body)))
    print(name(*ask(connection, GET_VERSIONS, struct.pack("<II", 0, 1))))


def full(address, count):
    listener = socket.create_server(("127.0.0.1", 0))
    print("tcp://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    for _ in range(int(count)):
        listener.accept()[0].close()
    ends = {listener.accept()[0]: dial(address)}
    ends.update({there: here for here, there in ends.items()})
    while True:
        for end in select.select(list(ends), [], [])[0]:
            data = end.recv(4096)
            if not data:
                return
            ends[end].sendall(data)


# Hangs up on so many callers as soon as they are welcomed, and lets the next one through.
def fickle(address, count):
    listener = socket.create_server(("127.0.0.1", 0))
    print("tcp://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    for left in range(int(count), -1, -1):
        here = listener.accept()[0]
        ends = {here: dial(address)}
        ends[ends[here]] = here
        while ends:
            for end in select.select(list(ends), [], [])[0]:
                data = end.recv(4096)
                if data:
                    ends[end].sendall(data)
                if not data or left and end is not here:
                    for each in ends:
                        each.close()
                    ends = {}
                    break


def make_noise(address, noise):
    connection = dial(address)
    try:
        connection.sendall(noise)
        while connection.recv(4096):
            pass
    except OSError:
        pass


def nuisance(address):
    silent = [dial(address) for _ in range(20)]
    for noise in os.urandom(4096), b"adam" + bytes(4092), bytes(65536):
        make_noise(address, noise)
    for kind, body in (SET, struct.pack("<I6s", 6, b"rate=9")), (SAVE, bytes(12)), (STOP, bytes(5)):
        print(name(*ask(hello(address, 0), kind, body)))
        print(name(*ask(hello(address, 0, ADMINISTRATOR), kind, body + b"too much")))
    for kind, text in (SET, b"rate=\0\xff=3"), (SET, b"\n\n=\n"), (GET_ROUTES, b""):
        body = struct.pack("<I", len(text)) + text if text else bytes(8)
        print(name(*ask(hello(address, 0, ADMINISTRATOR), kind, body)))
    for _ in range(10):
        send(hello(address, 0, ADMINISTRATOR), SAVE, bytes(12))
    for connection in silent:
        connection.close()


VERSION = version()
{"fickle": fickle, "silent": silent, "greet": greet, "thief": thief, "push": push, "impostor": impostor, "deaf": deaf, "huge": huge, "nuisance": nuisance, "full": full}[sys.argv[1]](*sys.argv[2:])
