#!/bin/bash
# run.sh TARGET SECONDS: lets build/fuzz/fuzz-TARGET look for faults, from the kept corpus on. What it
# learns goes to build/fuzz/corpus/TARGET, an input with a fault to build/fuzz/findings/TARGET-*.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$1
seconds=$2
program=build/fuzz/fuzz-$target
if [[ ! -x $program ]]; then
  echo "skipped: no $program (./dev fuzz builds it; it needs clang)"
  exit 77
fi
case $target in
  mcp_*) dictionary=mcp length=4096 ;;
  request_parser) dictionary=http length=2048 ;;
  image) dictionary='' length=8192 ;; # a header and the one part that is always there are 3.5 kB
  *) dictionary='' length=2048 ;;
esac
options=("-max_total_time=$seconds" "-max_len=$length" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
  "-artifact_prefix=build/fuzz/findings/$target-")
[[ -z $dictionary ]] || options+=("-dict=tests/fuzz/$dictionary.dict")
mkdir -p build/fuzz/findings "build/fuzz/corpus/$target"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1
export ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(command -v llvm-symbolizer-19 || true)}
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Not its own status: for a fault that is the 77 which says "skipped" elsewhere.
"$program" "${options[@]}" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target" || exit 1
