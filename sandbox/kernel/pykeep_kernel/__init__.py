"""The Python side of a sandbox: an IPython shell behind the kernel link (docs/kernel-link.md)."""
