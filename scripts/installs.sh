#!/bin/bash
# What ./dev installs, and how: Debian packages, and private environments under build/. Sourced by it, in the
# repository's root. What has a list or a lockfile is made anew when that changes.
root=$PWD

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# ---- Debian packages ----

# The newest Boost from 1.81 on that is installed, else that the distribution offers, as "1.83".
boost_version() {
  local versions
  versions=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 'libboost-json1.*-dev' 2>/dev/null |
    sed -n 's/^ii  *libboost-json\(.*\)-dev$/\1/p')
  [[ -n $versions ]] ||
    versions=$(apt-cache pkgnames libboost-json1. | sed -n 's/^libboost-json\(.*\)-dev$/\1/p')
  sort -V <<<"$versions" | awk -F. '$1 > 1 || $2 >= 81 {newest = $0} END {print newest}'
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    command -v sudo >/dev/null || die "not root and no sudo; please run: $*"
    sudo "$@"
  fi
}

# need PACKAGE...: installs the Debian packages that are missing.
need() {
  local package missing=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

need_build_tools() {
  command -v apt-get >/dev/null || die "only Debian and Ubuntu are supported so far (no apt-get here)"
  local boost
  boost=$(boost_version)
  if [[ -z $boost ]]; then # the lists may never have been fetched
    as_root apt-get update -qq
    boost=$(boost_version)
  fi
  [[ -n $boost ]] || die "no Boost 1.81 or newer: it needs Debian 12, Ubuntu 24.04 or newer"
  need g++ cmake ninja-build pkg-config "libboost$boost-dev" "libboost-json$boost-dev" libspdlog-dev \
    libcli11-dev libseccomp-dev libcjose-dev libjansson-dev libssl-dev openssl libcurl4-openssl-dev doctest-dev \
    libvalijson-dev bubblewrap python3 python3-venv
}

# ---- environments under build/ ----

# venv NAME REQUIREMENT...: a private Python environment under build/, remade when its list changes.
venv() {
  local directory=$root/build/$1
  shift
  if [[ $(cat "$directory/requirements" 2>/dev/null) != "$*" ]]; then
    say "installing $* into ${directory#"$root"/}"
    rm -rf "$directory"
    python3 -m venv "$directory"
    "$directory/bin/pip" install -q --disable-pip-version-check "$@"
    echo "$*" >"$directory/requirements"
  fi
}

# node_programs NAME [FOLDER]: what the package.json in FOLDER (tests/NAME) asks for and its Node.js, under build/NAME,
# as the lockfile has it (`npm ci` refuses it: an optional package of Windows is in no registry). Without npm its
# tests are skipped.
node_programs() {
  local directory=$root/build/$1 folder=${2:-tests/$1}
  cmp -s "$folder/package-lock.json" "$directory/installed" && return 0
  command -v npm >/dev/null || need npm
  say "installing what $folder/package.json asks for into ${directory#"$root"/}"
  rm -rf "$directory"
  mkdir -p "$directory"
  cp "$folder/package.json" "$folder/package-lock.json" "$directory"
  if npm install --prefix "$directory" --omit=optional --no-audit --no-fund >"build/$1.log" 2>&1; then
    cp "$folder/package-lock.json" "$directory/installed"
  else
    tail -n 3 "build/$1.log" >&2
    say "not installed (build/$1.log): its tests are skipped"
  fi
}

# browser: a headless Chromium, for pages. Where none can be had their test is skipped.
browser() {
  local name
  for name in chromium-headless-shell chromium google-chrome; do
    command -v "$name" >/dev/null && return 0
  done
  need chromium-headless-shell || say "no Chromium: the test of examples/data_analyst is skipped"
}

# example_packages [NAME...]: what the lockfiles of these examples (of all) ask for, each different one once, in
# build/examples/<its hash>, where examples/run.py looks for it. Without it an example's test is skipped.
example_packages() {
  local name lock directory locks=()
  for name; do
    locks+=("examples/$name/requirements.lock" "examples/$name/package-lock.json")
  done
  (($#)) || locks=(examples/*/requirements.lock examples/*/package-lock.json)
  [[ " ${*:-data_analyst} " != *" data_analyst "* ]] || browser
  for lock in "${locks[@]}"; do
    [[ -e $lock ]] || continue
    directory=$root/build/examples/$(sha256sum <"$lock" | head -c 12)
    [[ -e $directory/complete ]] && continue
    say "installing what $lock asks for into ${directory#"$root"/}"
    [[ $lock == *.json ]] || venv uv uv==0.13.9
    rm -rf "$directory"
    mkdir -p "$directory"
    if install_lock "$lock" "$directory" >"$directory.log" 2>&1; then
      touch "$directory/complete"
    else
      tail -n 3 "$directory.log" >&2
      say "not installed (${directory#"$root"/}.log): its test is skipped"
    fi
  done
}

# install_lock LOCKFILE DIRECTORY: Python packages as an environment, those of Node.js as node_modules.
install_lock() {
  local uv=$root/build/uv/bin/uv
  if [[ $1 == *.json ]]; then
    cp "${1%-lock.json}.json" "$1" "$2" && npm install --prefix "$2" --omit=optional --no-audit --no-fund
  else
    export UV_CACHE_DIR=$root/build/uv/cache UV_PYTHON_DOWNLOADS=never
    "$uv" venv --clear --python python3 "$2" &&
      "$uv" pip install --python "$2/bin/python" --require-hashes -r "$1"
  fi
}

# python_clients: the official Python clients, each in an environment of its own.
python_clients() {
  local version packages
  for version in 1 2; do
    mapfile -t packages <"tests/clients/python_v$version.lock"
    venv "client-python-$version" "${packages[@]}"
  done
}

# proxies: nginx and Caddy for their test, unpacked and not installed, so that no service starts. Where they
# cannot be had the test uses the machine's, or is skipped.
proxies() {
  local directory=$root/build/proxies package
  export PYKEEP_PROXIES=$directory
  [[ -e $directory/complete ]] && return 0
  say "unpacking nginx and caddy into ${directory#"$root"/}"
  rm -rf "$directory"
  mkdir -p "$directory"
  for package in nginx caddy; do
    (cd "$directory" && apt-get download -qq "$package" && dpkg-deb -x "$package"_*.deb .) \
      >"build/proxies-$package.log" 2>&1 || say "no $package (build/proxies-$package.log)"
  done
  touch "$directory/complete"
}

# empty_root: a Debian with nothing of ours but what apt has to download for it, for the tests of packages.
empty_root() {
  ((EUID == 0)) || return 0 # those tests say so
  need mmdebstrap umoci
  [[ -e build/empty-root/complete ]] && return 0
  say "making build/empty-root"
  tests/packages/make_root.sh build/empty-root >build/empty-root.log 2>&1 ||
    say "not made (build/empty-root.log): tests that need it are skipped"
}
