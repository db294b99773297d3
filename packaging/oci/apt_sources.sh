#!/bin/bash
# apt_sources.sh: the distribution's own sources of this machine, one `deb` line each, for mmdebstrap. (With no
# mirror named, mmdebstrap would not use the one that this machine reaches.)
set -euo pipefail
distribution=$(. /etc/os-release && echo "${ID^}")
apt-get indextargets --format 'deb $(SITE) $(RELEASE) $(COMPONENT)' "Created-By: Packages" "Origin: $distribution" |
  sort -u
