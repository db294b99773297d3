#!/bin/bash
# Holds the includes to the direction of the dependencies (ARCHITECTURE.md), and third-party headers
# to the files they are fenced into.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=(async schemas mcp transport sandbox tools client_config app)
declare -A may_know=(
  [async]="async"
  [schemas]="schemas"
  [mcp]="mcp schemas async"
  [transport]="transport mcp schemas async"
  [sandbox]="sandbox schemas async"
  [tools]="tools mcp sandbox schemas async"
  [client_config]="client_config"
  [app]="app client_config tools transport mcp sandbox schemas async"
)
bad=0

# complain WHY GREP-ARGUMENTS...: fails the run and shows the lines when grep finds any.
complain() {
  local why=$1
  shift
  if grep -rnE --include='*.hpp' --include='*.cpp' "$@"; then
    echo "  ^ $why"
    bad=1
  fi
}

for folder in "${folders[@]}"; do
  for other in "${folders[@]}"; do
    case " ${may_know[$folder]} " in
      *" $other "*) ;;
      *) complain "$folder/ may not include $other/" "#include \"$other/" "$folder" ;;
    esac
  done
done

everything=("${folders[@]}" tests)
complain "include the part of Asio that is used: the umbrella header doubles the build" \
  '#include <boost/asio\.hpp>' "${everything[@]}"
complain "Beast belongs to transport/http/, behind Exchange" \
  --exclude-dir=http '#include <boost/beast' "${everything[@]}"
complain "libcurl belongs to sandbox/pandastack/transfers.cpp, behind Http" \
  --exclude=curl.hpp '#include <curl/' "${everything[@]}"
complain "libcurl belongs to sandbox/pandastack/transfers.cpp, behind Http" \
  --exclude={curl.cpp,transfer.hpp,transfers.cpp} '#include "sandbox/pandastack/curl\.hpp"' "${everything[@]}"
complain "include from the repository's root, not relative to the file" \
  '#include "\.\.?/' "${everything[@]}"

exit $bad
