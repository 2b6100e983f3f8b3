#!/usr/bin/env bash
# Runs a command with no more than README.md says that make demo and make test need: PATH has links
# to those programs alone, HOME is empty, and no variable is set but those of Go's caches and
# module proxy.
set -euo pipefail

# Go, git, make and bash, and what POSIX has everywhere.
readonly programs=(go git make bash sh awk cat chmod cp cut dirname env false getconf grep head ls mkdir mktemp mv rm sed sleep sort tail touch tr true uname wc)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/home"
for program in "${programs[@]}"; do
  ln -s "$(command -v "$program")" "$scratch/bin/$program"
done
settings=()
for name in GOCACHE GOMODCACHE GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOTOOLCHAIN; do
  value=$(go env "$name")
  [[ -z $value ]] || settings+=("$name=$value")
done
env -i PATH="$scratch/bin" HOME="$scratch/home" "${settings[@]}" "$@"
