#!/usr/bin/env bash
# Runs every fuzz target for the time given ("30s"), and finds the targets itself.
# With a second argument N it also keeps up to N inputs of each in testdata/fuzz: of those
# that reached code which no earlier one did, from the smallest to the largest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

time=${1:?usage: test/tools/fuzz.sh TIME [KEEP]}
keep=${2:-0}
readonly largest=4096 # bytes of an input that is kept: it is read with every test run

# keep_inputs PACKAGE FOLDER TARGET copies inputs from the cache of go test -fuzz.
keep_inputs() {
  local cached kept
  cached="$(go env GOCACHE)/fuzz/$1/$3"
  kept="$2/testdata/fuzz/$3"
  [[ -d "$cached" ]] || return 0
  mkdir -p "$kept"
  find "$cached" -type f -size -"$largest"c -printf '%s %p\n' | sort -n |
    awk -v n="$keep" '{ path[NR] = $2 } END { for (i = 0; i < n && i < NR; i++) print path[1 + int(i * (NR - 1) / (n > 1 ? n - 1 : 1))] }' |
    sort -u | xargs -r cp -n -t "$kept"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run TARGET FOLDER fuzzes a target. Before Go 1.27, the end of the time may be reported as a
# failure without an input (go.dev/issue/75804): the target is run again then.
run() {
  # Without the limit, most of the time goes into making interesting inputs smaller.
  local fuzz=(go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -fuzzminimizetime 20x "$2")
  "${fuzz[@]}" 2>&1 | tee "$log" && return
  if grep -q 'Failing input' "$log" || ! grep -qx '    context deadline exceeded' "$log"; then return 1; fi
  echo "fuzz: $1 failed only because its time was over; again"
  "${fuzz[@]}"
}

count=0
while read -r folder; do
  package=$(go list "./$folder")
  for target in $(go test -list '^Fuzz' "./$folder" | grep '^Fuzz'); do
    echo "fuzz: $package $target for $time"
    run "$target" "./$folder"
    if ((keep > 0)); then keep_inputs "$package" "$folder" "$target"; fi
    count=$((count + 1))
  done
done < <(grep -rlE --include='*_test.go' '^func Fuzz' api cmd pkg test | xargs -r -n1 dirname | sort -u)
((count > 0)) || { echo "fuzz: no fuzz target found" >&2; exit 1; }
echo "fuzz: $count targets passed"
