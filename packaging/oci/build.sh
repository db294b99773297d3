#!/bin/bash
# build.sh DIST [REQUIREMENTS]: the image that the Dockerfile describes, without Docker and without privileges
# (mmdebstrap in user namespaces, from this machine's distribution and sources): DIST/pykeep-VERSION-image.tar, an
# OCI archive. Its Python environment is the one that `pykeep template build` makes; with REQUIREMENTS, of those.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dist=$(cd "$1" && pwd)
requirements=${2:-}
debs=("$dist"/pykeep_*_amd64.deb)
deb=${debs[-1]}
version=${deb##*/pykeep_} version=${version%_amd64.deb}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
: "${SOURCE_DATE_EPOCH:=$(stat -c %Y "$deb")}"
export SOURCE_DATE_EPOCH

"$here/apt_sources.sh" >"$scratch/sources.list"
mkdir "$scratch/setup"
cp "$here/setup.sh" "$scratch/setup"
cp "$deb" "$scratch/setup/pykeep.deb"
[[ -z ${PIP_CERT:-} ]] || cp "$PIP_CERT" "$scratch/setup/ca.crt"
[[ -z $requirements ]] || cp "$requirements" "$scratch/setup/requirements.txt"
# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook="copy-in $scratch/setup /" \
  --customize-hook="chroot \"\$1\" sh /setup/setup.sh /setup >&2" \
  --customize-hook="rm -r \"\$1/setup\"" \
  "$codename" "$scratch/root.tar" "$scratch/sources.list"
python3 "$here/layout.py" "$scratch/root.tar" "$here/Dockerfile" "$version" "$dist/pykeep-$version-image.tar"
