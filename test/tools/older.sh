#!/usr/bin/env bash
# Builds an older Kubernetes and an older Gatekeeper into a per-user cache, and prints the
# folder that holds them in the layout of test/tools/cluster/build.sh, the only line on
# stdout. The argument, oldest or middle, is the folder next to this script whose go.mod
# files have the versions. About ten minutes on two cores the first time, and nothing after
# that.
#
# Gatekeeper is in a module of its own, because it needs other libraries of Kubernetes.
set -euo pipefail

case ${1:-} in oldest | middle) ;; *) echo "older.sh: name oldest or middle" >&2; exit 64 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
from=$here/$1
hash=$(cat "$from/go.mod" "$from/go.sum" "$from/gatekeeper/go.mod" "$from/gatekeeper/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"
gatekeeper=github.com/open-policy-agent/gatekeeper/v3

if [[ ! -f "$bin/gatekeeper.yaml" ]]; then
  echo "tools: building the $1 kube-apiserver, kube-controller-manager, kubectl and gatekeeper (ten minutes the first time)" >&2
  mkdir -p "$(dirname "$bin")"
  # The scratch folder is next to the target so that the final rename is atomic: another
  # run sees either nothing or everything.
  scratch=$(mktemp -d "$bin.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # kubectl cannot parse the version of an API server that was built without one.
  version=$(cd "$from" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  (cd "$from" && nice go build -p "${JOBS:-2}" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" -o "$scratch/" \
    k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl) >&2
  (cd "$from/gatekeeper" && nice go build -p "${JOBS:-2}" -ldflags "-s -w" -o "$scratch/gatekeeper" "$gatekeeper") >&2
  install -m 0644 "$(cd "$from/gatekeeper" && go list -m -f '{{.Dir}}' "$gatekeeper")/deploy/gatekeeper.yaml" "$scratch/gatekeeper.yaml"
  rm -rf "$bin"
  mv "$scratch" "$bin"
fi
echo "$bin"
