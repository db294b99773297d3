"""The relay: how a server reaches the kernel in a guest (docs/guest-relay.md). Standard library only."""
