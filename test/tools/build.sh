#!/usr/bin/env bash
# Builds the command-line tools pinned in this module (two major versions of
# cosign) into a per-user cache, and prints the folder that holds them.
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/<hash>/bin,
# where <hash> covers go.mod and go.sum, so a change of version is a new folder
# and a second run with the same versions builds nothing. Progress goes to
# stderr; the only line on stdout is the folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"
# One compiler process at a time keeps a small machine usable; raise it with JOBS.
jobs=${JOBS:-1}

build() {
  local name=$1 package=$2 scratch
  if [[ -x "$bin/$name" ]]; then
    echo "tools: $name is built" >&2
    return
  fi
  echo "tools: building $name from $package (minutes the first time)" >&2
  # The scratch folder sits beside the target so that the final rename is
  # atomic: another run sees either no binary or a whole one.
  scratch=$(mktemp -d "$bin/.build-XXXXXX")
  if ! (cd "$here" && nice go build -p "$jobs" -o "$scratch/$name" "$package"); then
    rm -rf "$scratch"
    echo "tools: building $name failed" >&2
    return 1
  fi
  mv -f "$scratch/$name" "$bin/$name"
  rm -rf "$scratch"
  echo "tools: built $name" >&2
}

mkdir -p "$bin"
build cosign-v2 github.com/sigstore/cosign/v2/cmd/cosign
build cosign-v3 github.com/sigstore/cosign/v3/cmd/cosign
echo "$bin"
