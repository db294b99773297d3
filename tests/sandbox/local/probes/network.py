"""Nothing answers: not the host's loopback, not its network, not the cloud's metadata service."""

import os
import socket
import time

port = int(os.environ["PYKEEP_TEST_PORT"])
reached = []
for family, address in [
    (socket.AF_INET, ("127.0.0.1", port)),
    (socket.AF_INET, ("0.0.0.0", port)),
    (socket.AF_INET, ("169.254.169.254", 80)),
    (socket.AF_INET, ("10.0.0.1", 80)),
    (socket.AF_INET, ("192.168.1.1", 80)),
    (socket.AF_INET, ("1.1.1.1", 53)),
    (socket.AF_INET6, ("::1", port)),
    (socket.AF_INET6, ("fd00:ec2::254", 80)),
]:
    start = time.monotonic()
    try:
        with socket.socket(family) as s:
            s.settimeout(3)
            s.connect(address)
        reached.append(address)
    except OSError:
        pass
    if time.monotonic() - start > 1:
        reached.append(("slow", address))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    try:
        s.sendto(b"x", ("8.8.8.8", 53))
        reached.append("udp")
    except OSError:
        pass
snmp = "/proc/self/net/dev_snmp6"
interfaces = os.listdir(snmp) if os.path.exists(snmp) else []
if [n for n in interfaces if n != "lo"]:
    reached.append(interfaces)
print("OK" if not reached else reached)
