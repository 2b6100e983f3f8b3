#!/usr/bin/env bash
# Builds what an end-to-end cluster needs, or finds it built, and prints where it
# is as shell exports.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$("$here/cluster/build.sh")
charts=$("$here/charts/build.sh")
printf 'export LANDWAITER_CLUSTER_TOOLS=%q LANDWAITER_CHART_TOOLS=%q\n' "$cluster" "$charts"
