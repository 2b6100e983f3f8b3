#!/usr/bin/env bash
# Builds the servers of a Sigstore instance pinned in this module (Fulcio, Rekor
# v2, a timestamp authority) into the same kind of cache as ../build.sh does for
# cosign, and prints the folder that holds them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"

build() {
  local name=$1 package=$2 scratch
  [[ ! -x "$bin/$name" ]] || { echo "tools: $name is built" >&2; return; }
  echo "tools: building $name from $package (a minute the first time)" >&2
  # Beside the target, so that the rename is atomic: another run sees either no
  # binary or a whole one.
  scratch=$(mktemp -d "$bin/.build-XXXXXX")
  if ! (cd "$here" && nice go build -p "${JOBS:-1}" -o "$scratch/$name" "$package"); then
    rm -rf "$scratch"
    echo "tools: building $name failed" >&2
    return 1
  fi
  mv -f "$scratch/$name" "$bin/$name"
  rm -rf "$scratch"
}

mkdir -p "$bin"
build fulcio github.com/sigstore/fulcio
build rekor github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix
build timestamp-server github.com/sigstore/timestamp-authority/v2/cmd/timestamp-server
echo "$bin"
