#!/bin/bash
# Install what a node of our own needs: Debian's packages. Does nothing when all is there.
set -euo pipefail
packages=(containerd runc containernetworking-plugins iptables conntrack ethtool socat openssl gcc libc6-dev debootstrap buildah iproute2)
missing=()
for package in "${packages[@]}"; do
  dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "error: run this as root on Debian to install: ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
