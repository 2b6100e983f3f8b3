#!/usr/bin/env bash
# Builds the Vale pinned in this module into a per-user cache, unless it is there, and prints
# the path of the binary, the only line on stdout. It needs a C compiler: Vale finds the
# comments of Go with tree-sitter, whose parsers take a tenth of the time to compile unoptimised.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"
export CGO_ENABLED=1 CGO_CFLAGS="-O0 -g0"
build vale github.com/errata-ai/vale/v3/cmd/vale
echo "$bin/vale"
