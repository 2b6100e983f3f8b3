#!/usr/bin/env bash
# Builds what `make dev` needs, says which step it is at and how long that takes, and
# starts the cluster. The first run takes a quarter of an hour, most of it in steps 3 and 4.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly steps=6
flux=${1:-} # not empty: with Flux
ticker=
trap '[[ -z "$ticker" ]] || kill "$ticker" 2>/dev/null || true' EXIT

# step NUMBER TEXT COMMAND... runs a command. What it prints goes to stdout; progress goes
# to stderr, every 15 seconds.
step() {
  local number=$1 text=$2 began=$SECONDS
  shift 2
  echo "dev: step $number of $steps: $text" >&2
  (while sleep 15 && kill -0 "$$" 2>/dev/null; do echo "dev: step $number of $steps: $text, $((SECONDS - began)) s so far" >&2; done) >/dev/null &
  ticker=$!
  local status=0
  "$@" || status=$?
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  ticker=
  if ((status)); then
    echo "dev: step $number of $steps failed" >&2
    exit "$status"
  fi
  echo "dev: step $number of $steps took $((SECONDS - began)) s" >&2
}

step 1 "building landwaiter" make --silent build
step 2 "installing etcd and Redis, if they are missing" test/tools/packages.sh
exports=$(step 3 "building the control plane, Gatekeeper and Helm, if they are not cached" test/tools/cluster.sh)
eval "$exports"
if [[ -n "$flux" ]]; then
  LANDWAITER_FLUX_TOOLS=$(step 3 "building Flux's controllers, if they are not cached" test/tools/flux/build.sh)
  export LANDWAITER_FLUX_TOOLS
fi
tools=$(step 4 "building cosign, if it is not cached" test/tools/build.sh cosign-v3)
LANDWAITER_COSIGN="$tools/cosign-v3"
step 5 "building the command that starts them" go build -buildvcs=false -o bin/dev ./test/dev
echo "dev: step 6 of $steps: starting everything" >&2
export LANDWAITER_SERVER="$PWD/bin/landwaiter-server" LANDWAITER_BINARY="$PWD/bin/landwaiter" LANDWAITER_COSIGN
trap - EXIT
exec bin/dev
