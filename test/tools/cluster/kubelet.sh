#!/usr/bin/env bash
# Builds the kubelet of this module into a per-user cache, with keyring, which asks the
# kubelet's code for logins, and prints the folder that holds them. Only the tests of a real
# node need them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/tools/build_one.sh
source "$here/../build_one.sh"

build kubelet k8s.io/kubernetes/cmd/kubelet
(cd "$here" && go build -o "$bin/keyring" keyring.go) >&2
echo "$bin"
