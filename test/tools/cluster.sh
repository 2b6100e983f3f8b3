#!/usr/bin/env bash
# Builds the tools of an end-to-end cluster unless they are cached, and prints their
# folders as shell exports.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$("$here/cluster/build.sh")
charts=$("$here/charts/build.sh")
printf 'export LANDWAITER_CLUSTER_TOOLS=%q LANDWAITER_CHART_TOOLS=%q\n' "$cluster" "$charts"
