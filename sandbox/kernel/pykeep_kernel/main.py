"""What the server starts (docs/kernel-link.md, "Starting it"). Short: it is never cached."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

if __name__ == "__main__":
    from pykeep_kernel.kernel import main

    main()
