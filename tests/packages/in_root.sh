#!/bin/bash
# in_root.sh ROOT SHOWN COMMAND...: runs a command in ROOT, as root, with the environment as it is. SHOWN is a
# directory that is also there, read-only and at the same path, or "".
#
# pivot_root and not chroot, since user namespaces are refused to a process in a chroot. /proc is mounted
# anew and whole: Linux lets a sandbox have a /proc only where one can be seen that nothing covers.
set -euo pipefail
exec unshare --mount --pid --fork --kill-child bash -c '
  set -eu
  root=$1 shown=$2
  shift 2
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  if [[ -n $shown ]]; then
    mkdir -p "$root$shown"
    mount --bind -o ro "$shown" "$root$shown"
  fi
  cd "$root"
  pivot_root . .
  umount -l .
  cd /
  exec "$@"' in_root "$@"
