#!/usr/bin/env bash
# Builds the oldest Kubernetes that is supported, and an older Gatekeeper, into a per-user
# cache, and prints the folder that holds them in the layout of test/tools/cluster/build.sh.
# About ten minutes on two cores the first time, and nothing after that. Progress goes to
# stderr; the only line on stdout is the folder.
#
# Gatekeeper is in a module of its own, because it needs newer libraries of Kubernetes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" "$here/gatekeeper/go.mod" "$here/gatekeeper/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"
gatekeeper=github.com/open-policy-agent/gatekeeper/v3

if [[ ! -f "$bin/gatekeeper.yaml" ]]; then
  echo "tools: building the oldest kube-apiserver, kube-controller-manager, kubectl and gatekeeper (ten minutes the first time)" >&2
  mkdir -p "$(dirname "$bin")"
  # The scratch folder sits beside the target so that the final rename is
  # atomic: another run sees either nothing or everything.
  scratch=$(mktemp -d "$bin.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # kubectl cannot parse the version of an API server that was built without one.
  version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  (cd "$here" && nice go build -p "${JOBS:-2}" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$scratch/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl) >&2
  (cd "$here/gatekeeper" && nice go build -p "${JOBS:-2}" -ldflags "-s -w" -o "$scratch/gatekeeper" "$gatekeeper") >&2
  install -m 0644 "$(cd "$here/gatekeeper" && go list -m -f '{{.Dir}}' "$gatekeeper")/deploy/gatekeeper.yaml" "$scratch/gatekeeper.yaml"
  rm -rf "$bin"
  mv "$scratch" "$bin"
fi
echo "$bin"
