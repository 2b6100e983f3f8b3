#!/usr/bin/env bash
# Builds the programs that end-to-end tests run, into bin, and prints their paths as shell
# exports: the server with the race detector, with it and all clouds, and as released; and
# the program for people as released, and with all clouds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# build OUT PACKAGE TAGS [FLAG]: as in the Makefile, without what nobody uses.
build() { go build -buildvcs=false -tags "kustomize_disable_go_plugin_support,grpcnotrace$3" -o "bin/$1" ${4:-} "./cmd/$2" >&2; }

clouds=,aws,azure,gcp
build landwaiter-server-race landwaiter-server "" -race
build landwaiter-server-full landwaiter-server "$clouds" -race
build landwaiter-server landwaiter-server ""
build landwaiter landwaiter ""
build landwaiter-full landwaiter "$clouds"
printf 'export LANDWAITER_SERVER=%q LANDWAITER_FULL_SERVER=%q LANDWAITER_PLAIN_SERVER=%q LANDWAITER_BINARY=%q LANDWAITER_FULL_BINARY=%q\n' \
  "$PWD/bin/landwaiter-server-race" "$PWD/bin/landwaiter-server-full" "$PWD/bin/landwaiter-server" "$PWD/bin/landwaiter" "$PWD/bin/landwaiter-full"
