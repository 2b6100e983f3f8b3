#!/usr/bin/env bash
# Builds the command-line tools pinned in this module (cosign-v2 and cosign-v3, or those
# named as arguments) into a per-user cache, and prints the folder that holds them, the
# only line on stdout.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/build_one.sh"

(($#)) || set -- cosign-v2 cosign-v3
for name in "$@"; do
  build "$name" "github.com/sigstore/cosign/${name#cosign-}/cmd/cosign"
done
echo "$bin"
