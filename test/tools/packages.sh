#!/usr/bin/env bash
# Installs the Debian packages that the end-to-end tests need, unless they are
# installed: etcd, Redis, and the programs that are named as arguments, whose packages
# have the same name. CHROMIUM or google-chrome count as chromium. Without the permissions
# to install, it says what is missing.
set -euo pipefail

missing=()
command -v etcd >/dev/null || missing+=(etcd-server)
command -v redis-server >/dev/null || missing+=(redis-server)
for program in "$@"; do
  [[ $program != chromium ]] || ! command -v "${CHROMIUM:-google-chrome}" >/dev/null || continue
  command -v "$program" >/dev/null || missing+=("$program")
done
((${#missing[@]})) || exit 0
if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
  echo "please install what is missing (Debian: apt-get install ${missing[*]})" >&2
  exit 1
fi
echo "tools: installing ${missing[*]}" >&2
# Keep packages from starting their own services.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -q >&2
apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
