#!/usr/bin/env bash
# Builds a Kubernetes between the oldest that is supported and the current one into a
# per-user cache, and prints the folder with its kube-apiserver, kube-controller-manager and
# kubectl, the only line on stdout. Minutes the first time, and nothing after that.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"

if [[ ! -x "$bin/kubectl" ]]; then
  echo "tools: building kube-apiserver, kube-controller-manager and kubectl of an older Kubernetes (minutes the first time)" >&2
  mkdir -p "$(dirname "$bin")"
  # The scratch folder is next to the target so that the final rename is atomic: another
  # run sees either nothing or everything.
  scratch=$(mktemp -d "$bin.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # kubectl cannot parse the version of an API server that was built without one.
  version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  (cd "$here" && nice go build -p "${JOBS:-2}" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$scratch/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl) >&2
  rm -rf "$bin"
  mv "$scratch" "$bin"
fi
echo "$bin"
