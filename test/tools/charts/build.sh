#!/usr/bin/env bash
# Builds helm, helm 4 (as helm4) and kustomize, as pinned in this module, into a per-user
# cache and prints the folder that holds them, the only line on stdout.
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/<hash>/bin, where
# <hash> covers go.mod, go.sum and this file.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"

if [[ ! -d "$bin" ]]; then
  echo "tools: building helm, helm 4 and kustomize (minutes the first time)" >&2
  mkdir -p "$(dirname "$bin")"
  # The scratch folder sits beside the target so that the final rename is
  # atomic: another run sees either nothing or everything.
  scratch=$(mktemp -d "$bin.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  # Without these, helm takes itself for one of Kubernetes 1.20.
  version="-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor=36"
  (cd "$here" && nice go build -p "${JOBS:-2}" -ldflags "-s -w $version" -o "$scratch/" \
    helm.sh/helm/v3/cmd/helm sigs.k8s.io/kustomize/kustomize/v5
    nice go build -p "${JOBS:-2}" -ldflags "-s -w" -o "$scratch/helm4" helm.sh/helm/v4/cmd/helm) >&2
  mv "$scratch" "$bin"
fi
echo "$bin"
