#!/usr/bin/env bash
# Installs the axe-core pinned in this folder, unless it is there, into the same kind of cache as
# ../build_one.sh does for Go, and prints the path of its script, the only line on stdout. npm
# checks the hash in package-lock.json.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(sha256sum <"$here/package-lock.json" | cut -c1-16)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash"
script="$folder/axe/node_modules/axe-core/axe.min.js"
if [[ ! -f $script ]]; then
  command -v npm >/dev/null || { echo "tools: npm is missing (Debian: apt-get install npm)" >&2; exit 1; }
  mkdir -p "$folder"
  scratch=$(mktemp -d "$folder/.axe-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  cp "$here/package.json" "$here/package-lock.json" "$scratch/"
  npm --prefix "$scratch" ci --ignore-scripts --no-audit --no-fund >&2
  rm -rf "$folder/axe"
  mv "$scratch" "$folder/axe"
fi
echo "$script"
