#!/usr/bin/env bash
# Builds the golangci-lint pinned in this module into a per-user cache and
# prints the path of the binary, the only line on stdout.
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/<hash>/bin,
# where <hash> covers go.mod, go.sum and the Go version: a linter built with an
# older Go refuses newer code, so a new toolchain is a new folder too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$( (cat "$here/go.mod" "$here/go.sum"; go env GOVERSION) | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"

if [[ ! -x "$bin/golangci-lint" ]]; then
  echo "lint: building golangci-lint (minutes the first time)" >&2
  mkdir -p "$bin"
  # The scratch folder is next to the target so that the final rename is
  # atomic: another run sees either no binary or a whole one.
  scratch=$(mktemp -d "$bin/.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  (cd "$here" && nice go build -p "${JOBS:-2}" -o "$scratch/golangci-lint" \
    github.com/golangci/golangci-lint/v2/cmd/golangci-lint) >&2
  mv -f "$scratch/golangci-lint" "$bin/golangci-lint"
fi
echo "$bin/golangci-lint"
