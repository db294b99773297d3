#!/bin/bash
# One stand-in for PandaStack for many of ctest's entries; who it belongs to is the ctest that runs them.
#   pandastack.sh up PYTHON           starts it (status 77: it cannot be had, and why)
#   pandastack.sh run COMMAND...      with it as the backend
#   pandastack.sh down
set -euo pipefail
place=${TMPDIR:-/tmp}/pykeep-test-pandastack.$PPID
does=$1
shift
case $does in
  up)
    if [[ -z ${PYKEEP_TEMPLATE:-} ]] || ! "${1:-false}" -c 'import aiohttp' 2>/dev/null; then
      echo "skipped: the stand-in for PandaStack needs PYKEEP_TEMPLATE and a Python with aiohttp (./dev test brings both)"
      exit 77
    fi
    setsid "$1" tests/fake_pandastack 0 --until "$PPID" >"$place" 2>"$place.log" </dev/null &
    pid=$!
    until grep -q 'ready on' "$place"; do
      kill -0 $pid 2>/dev/null || { cat "$place.log"; exit 1; }
      sleep 0.1
    done
    echo $pid >"$place.pid"
    ;;
  run)
    [[ -e $place ]] || { echo "skipped: there is no stand-in for PandaStack (its entry says why)"; exit 77; }
    export PYKEEP_BACKEND=pandastack PANDASTACK_API_KEY=pds_local_dev_token
    PANDASTACK_API=$(sed 's/.* on //' "$place")
    export PANDASTACK_API
    exec "$@"
    ;;
  down)
    [[ -e $place.pid ]] || exit 0
    kill "$(cat "$place.pid")"
    cat "$place.log"
    rm -f "$place" "$place.pid" "$place.log"
    ;;
esac
