#!/usr/bin/env bash
# Builds the oras command pinned in this module, which copies images with their
# referrers, into the same kind of cache as ../build.sh does for cosign, and prints
# the folder that holds it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"

build oras oras.land/oras/cmd/oras
echo "$bin"
