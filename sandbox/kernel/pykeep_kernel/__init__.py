"""The Python side of a pykeep sandbox: one IPython shell behind the kernel link (docs/kernel-link.md)."""
