#!/bin/bash
# in_root.sh ROOT SHOWN COMMAND...: runs a command in ROOT, as root, with the environment as it is. SHOWN is a
# directory that is also there, read-only and at the same path, or "".
#
# bwrap and not chroot, since user namespaces are refused to a process in a chroot. /proc is mounted anew
# and whole: Linux lets a sandbox have a /proc only where one can be seen that nothing covers.
set -euo pipefail
root=$1 shown=$2
shift 2
[[ -z $shown ]] || mkdir -p "$root$shown" # bwrap would make it for root alone
exec unshare --mount --pid --fork --kill-child --mount-proc \
  bwrap --bind "$root" / --bind /proc /proc --dev-bind /dev /dev --bind /sys /sys \
  ${shown:+--ro-bind "$shown" "$shown"} --cap-add ALL --chdir / -- "$@"
