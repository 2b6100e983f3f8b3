#!/usr/bin/env bash
# Writes what is derived from the chart and the CRDs: the list of CRDs
# for kustomize, the chart's copy of them, config/default, the chart with its default
# values for kustomize, and config/guardrails, its guardrails alone.
# HELM is the helm to use.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=${HELM:-$(test/tools/charts/build.sh)/helm}

{
  echo "# Made from the CRDs beside it by \`make generate\`."
  echo "apiVersion: kustomize.config.k8s.io/v1beta1"
  echo "kind: Kustomization"
  echo "resources:"
  for name in config/crd/landwaiter.dev_*.yaml; do echo "- ${name##*/}"; done
} >config/crd/kustomization.yaml

rm -rf charts/landwaiter/files/crds
mkdir -p charts/landwaiter/files/crds
cp config/crd/landwaiter.dev_*.yaml charts/landwaiter/files/crds/

# Pieces for the role of Tenants' accounts, which people without Helm apply as they are.
rm -rf charts/landwaiter/files/pieces
mkdir -p charts/landwaiter/files/pieces
cp config/pieces/*.yaml charts/landwaiter/files/pieces/

# The CRDs of reports are those of the Go module that writes them.
rm -rf charts/landwaiter/files/reports
mkdir -p charts/landwaiter/files/reports
for name in "$(go list -m -f '{{.Dir}}' github.com/openreports/reports-api)"/config/crd/openreports.io_*.yaml; do
  cat "$name" >"charts/landwaiter/files/reports/${name##*/}"
done

{
  echo "# Made from charts/landwaiter with its default values by \`make generate\`."
  "$helm" template landwaiter charts/landwaiter --namespace landwaiter-system --set crds.install=false |
    sed -e 's/app.kubernetes.io\/managed-by: Helm/app.kubernetes.io\/managed-by: kustomize/' -e '/helm.sh\/chart:/d' -e '/helm.sh\/resource-policy:/d'
} >config/default/landwaiter.yaml

mkdir -p config/guardrails
{
  echo "# Made from charts/landwaiter by \`make generate\`. Remove these before the kind Tenant: docs/operate/uninstall.md."
  "$helm" template landwaiter charts/landwaiter --namespace landwaiter-system --set guardrails.enabled=true \
    --show-only templates/guardrails.yaml --show-only templates/operator-guardrail.yaml |
    sed -e 's/app.kubernetes.io\/managed-by: Helm/app.kubernetes.io\/managed-by: kustomize/' -e '/helm.sh\/chart:/d' -e '/helm.sh\/resource-policy:/d'
} >config/guardrails/guardrails.yaml
