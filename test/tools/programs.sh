#!/usr/bin/env bash
# Builds the programs that end-to-end tests run, into bin, and prints their paths as shell
# exports: the server with the race detector, and with it and all clouds; the program for
# people as released, and with all clouds. With the argument "plain" it also builds the server
# as released, which nightly tests measure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# build NAME OUT PACKAGE TAGS [FLAG]: as in the Makefile, without what nobody uses.
build() {
  go build -buildvcs=false -trimpath -tags "kustomize_disable_go_plugin_support,grpcnotrace$4" -o "bin/$2" ${5:-} "./cmd/$3" >&2
  printf 'export %s=%q\n' "$1" "$PWD/bin/$2"
}

clouds=,aws,azure,gcp
CGO_ENABLED=1 build LANDWAITER_SERVER landwaiter-server-race landwaiter-server "" -race
CGO_ENABLED=1 build LANDWAITER_FULL_SERVER landwaiter-server-full landwaiter-server "$clouds" -race
build LANDWAITER_BINARY landwaiter landwaiter ""
build LANDWAITER_FULL_BINARY landwaiter-full landwaiter "$clouds"
if [[ ${1:-} == plain ]]; then
  build LANDWAITER_PLAIN_SERVER landwaiter-server landwaiter-server ""
fi
