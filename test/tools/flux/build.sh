#!/usr/bin/env bash
# Builds the Flux controllers pinned in this module, sops and age-keygen into a per-user
# cache, and prints the folder that holds them, with the controllers' own CRDs of
# resources in crds/: source-controller, kustomize-controller, helm-controller, sops and
# age-keygen.
#
# The folder is ${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/<hash>/bin, where <hash>
# covers go.mod, go.sum and this file. Progress goes to stderr; the only line on stdout is
# the folder.
#
# go.sum starts from the controllers' own go.sum files, because the public checksum
# database does not know every one of Flux's small modules.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
hash=$(cat "$here/go.mod" "$here/go.sum" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
bin="${XDG_CACHE_HOME:-$HOME/.cache}/landwaiter/tools/$hash/bin"
controllers=(source-controller kustomize-controller helm-controller)

if [[ ! -d "$bin" ]]; then
  echo "tools: building Flux's controllers, sops and age-keygen (minutes the first time)" >&2
  mkdir -p "$(dirname "$bin")"
  # The scratch folder sits beside the target so that the final rename is
  # atomic: another run sees either nothing or everything.
  scratch=$(mktemp -d "$bin.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  (cd "$here" && nice go build -buildvcs=false -p "${JOBS:-2}" -ldflags "-s -w" -o "$scratch/" \
    "${controllers[@]/#/github.com/fluxcd/}" github.com/getsops/sops/v3/cmd/sops filippo.io/age/cmd/age-keygen) >&2
  mkdir "$scratch/crds"
  for controller in "${controllers[@]}"; do
    module=$(cd "$here" && go list -m -f '{{.Dir}}' "github.com/fluxcd/$controller")
    install -m 0644 -t "$scratch/crds" "$module"/config/crd/bases/*.yaml
  done
  mv "$scratch" "$bin"
fi
echo "$bin"
