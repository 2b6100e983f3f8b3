#!/usr/bin/env bash
# Prints the packages with test files that a build tag ("e2e", "nightly") adds, so that no list can
# forget one, or with the argument "tests" a pattern of the tests in these files: the other tests of
# their packages are make test's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tag=${1:?usage: test/tools/tagged.sh TAG [tests]}
files=$(grep -rlP "^//go:build (.*[^!\w])?$tag\b" --include='*_test.go' api cmd config pkg test)
if [[ ${2:-} == tests ]]; then
  # shellcheck disable=SC2086 # names of files
  grep -hoP '^func \KTest\w+(?=\()' $files | grep -vx TestMain | sort -u | paste -sd'|' | sed 's/.*/^(&)$/'
else
  xargs -r -n1 dirname <<<"$files" | sort -u | sed 's|^|./|'
fi
