"""`pykeep` as pip and uv install it: the program of this package, with its own environment for kernels."""

import os
import sys

from pykeep.program import environment, path


def main():
    program = path()
    os.execve(program, [program, *sys.argv[1:]], environment())


if __name__ == "__main__":
    main()
