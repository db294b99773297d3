#!/bin/bash
# pytest.sh PYTHON FOLDER: runs a folder's pytest suite; status 77 tells ctest that it could not run.
set -euo pipefail
python=${1:-}
shift
if [[ -z $python ]] || ! "$python" -c 'import pytest' 2>/dev/null; then
  echo "skipped: no Python with pytest (./dev test brings one; else configure with -DPYKEEP_PYTEST=...)"
  exit 77
fi
exec "$python" -m pytest -q -rs -p no:cacheprovider "$@"
