#!/usr/bin/env bash
# Builds the program that end-to-end tests run, into bin, and prints its paths as shell
# exports: with the race detector, with the race detector and all clouds, and as released.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# As in the Makefile: without kustomize's loader of Go plugins.
tags=kustomize_disable_go_plugin_support
go build -race -buildvcs=false -tags "$tags" -o bin/landwaiter-race ./cmd/landwaiter >&2
go build -race -buildvcs=false -tags "$tags,aws,azure,gcp" -o bin/landwaiter-full-race ./cmd/landwaiter >&2
go build -buildvcs=false -tags "$tags" -o bin/landwaiter ./cmd/landwaiter >&2
printf 'export LANDWAITER_BINARY=%q LANDWAITER_FULL_BINARY=%q LANDWAITER_PLAIN_BINARY=%q\n' \
  "$PWD/bin/landwaiter-race" "$PWD/bin/landwaiter-full-race" "$PWD/bin/landwaiter"
