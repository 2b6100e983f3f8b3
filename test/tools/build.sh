#!/usr/bin/env bash
# Builds the command-line tools pinned in this module (two major versions of
# cosign) into a per-user cache, and prints the folder that holds them, the only
# line on stdout.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/build_one.sh"

build cosign-v2 github.com/sigstore/cosign/v2/cmd/cosign
build cosign-v3 github.com/sigstore/cosign/v3/cmd/cosign
echo "$bin"
