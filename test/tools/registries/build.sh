#!/usr/bin/env bash
# Builds the registries pinned in this module into the same kind of cache as ../build.sh
# does for cosign, and prints the folder that holds them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"

build distribution github.com/distribution/distribution/v3/cmd/registry
build olareg github.com/olareg/olareg/cmd/olareg
echo "$bin"
