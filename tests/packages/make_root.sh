#!/bin/bash
# make_root.sh DIRECTORY: this machine's distribution with apt and nothing else, as a root directory. What the .deb
# depends on is in apt's cache and not installed, so that a test's `apt-get install` needs no network.
set -euo pipefail
directory=$1
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT
packaging/oci/apt_sources.sh >"$sources"
rm -rf "$directory"
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
depends="bubblewrap python3 python3-venv fonts-dejavu-core"
mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --skip=cleanup/apt \
  --customize-hook="chroot \"\$1\" apt-get install -qq -y --download-only --no-install-recommends $depends" \
  "$codename" "$directory" "$sources"
touch "$directory/complete"
