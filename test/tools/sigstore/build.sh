#!/usr/bin/env bash
# Builds the servers of a Sigstore instance pinned in this module (Fulcio, Rekor
# v2, a timestamp authority) into the same kind of cache as ../build.sh does for
# cosign, and prints the folder that holds them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"

build fulcio github.com/sigstore/fulcio
build rekor github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix
build timestamp-server github.com/sigstore/timestamp-authority/v2/cmd/timestamp-server
echo "$bin"
