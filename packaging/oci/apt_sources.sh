#!/bin/bash
# apt_sources.sh: the distribution's own sources of this machine, one `deb` line each, for mmdebstrap. (With no
# mirror named, mmdebstrap would not use the one that this machine reaches.)
set -euo pipefail
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "${ID^}")
# shellcheck disable=SC2016 # expanded by apt
format='deb $(SITE) $(RELEASE) $(COMPONENT)'
apt-get indextargets --format "$format" "Created-By: Packages" "Origin: $distribution" | sort -u
