"""One allocation past the limit raises MemoryError and leaves the process alive."""

try:
    a = bytearray(10**11)
    print("allocated")
except MemoryError:
    print("OK")
