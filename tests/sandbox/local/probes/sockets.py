"""Only local and internet sockets exist."""

import socket

made = []
for family, kind in [
    ("AF_PACKET", socket.SOCK_RAW),
    ("AF_NETLINK", socket.SOCK_RAW),
    ("AF_VSOCK", socket.SOCK_STREAM),
    ("AF_ALG", socket.SOCK_SEQPACKET),
    ("AF_CAN", socket.SOCK_RAW),
]:
    try:
        socket.socket(getattr(socket, family), kind).close()
        made.append(family)
    except PermissionError:
        pass
a, b = socket.socketpair()
a.send(b"x")
b.recv(1)
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    made.append("raw")
except PermissionError:
    pass
print("OK" if not made else made)
