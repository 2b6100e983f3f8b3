#!/usr/bin/env bash
# Builds the kubelet of this module into a per-user cache, and prints the folder that holds
# it. Only the tests of a real node need it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"

build kubelet k8s.io/kubernetes/cmd/kubelet
echo "$bin"
