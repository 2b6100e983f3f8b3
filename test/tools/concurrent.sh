#!/usr/bin/env bash
# Prints the packages that make test runs and where goroutines meet: their code starts some or
# shares memory between them, or their tests start some. The race detector finds nothing elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly starts='^\s*go (func|[a-z][A-Za-z.]*)\(|\berrgroup\.|\bsync\.WaitGroup\b'
readonly shares="$starts"'|\batomic\.|\bsync\.(Cond|Map|Mutex|Pool|RWMutex)\b'
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}} {{join .GoFiles ","}} {{join .TestGoFiles ","}},{{join .XTestGoFiles ","}}{{end}}' ./... |
  while read -r package folder code tests; do
    [[ -n $package ]] || continue
    [[ -n $tests ]] || tests=$code code='' # a package of tests alone
    cd "$folder"
    # shellcheck disable=SC2086
    if grep -qsE "$shares" ${code//,/ } /dev/null || grep -qsE "$starts" ${tests//,/ } /dev/null; then echo "$package"; fi
  done
