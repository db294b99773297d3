#!/bin/sh
# setup.sh FOLDER: makes a plain Debian or Ubuntu root the image's, of the .deb in FOLDER and, if they are there, its
# requirements.txt and ca.crt. Run inside that root, as root, by build.sh and by the Dockerfile.
set -eu
folder=$1
set -- "$folder"/pykeep*.deb
deb=$1
set --
[ ! -e "$folder/requirements.txt" ] || set -- --requirements "$folder/requirements.txt"
# Behind a proxy that opens TLS pip needs that one's certificate; it reads either variable, the second one first.
[ ! -e "$folder/ca.crt" ] || export PIP_CERT="$folder/ca.crt" REQUESTS_CA_BUNDLE="$folder/ca.crt"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$deb" fonts-wqy-microhei fonts-symbola libcurl4 ca-certificates

# An environment of its own, which a volume on the state directory does not cover. Its kernel image is made when the
# first session starts: that takes a sandbox, and images are built where none can be had.
pykeep --state-dir /opt/pykeep --no-images template build "$@"
rm -rf /opt/pykeep/kernel /root/.cache
chmod 755 /opt/pykeep # made for one user alone, as state directories are; the service's is to read it

useradd --system --uid 842 --home-dir /var/lib/pykeep --shell /usr/sbin/nologin pykeep
install -d -m 700 -o pykeep -g pykeep /var/lib/pykeep
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/log/alternatives.log /var/cache/ldconfig/aux-cache
