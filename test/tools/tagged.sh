#!/usr/bin/env bash
# Prints the packages with test files that a build tag ("e2e", "nightly") adds, so that no
# list can forget one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tag=${1:?usage: test/tools/tagged.sh TAG}
grep -rlP "^//go:build (.*[^!\w])?$tag\b" --include='*_test.go' api cmd config pkg test |
  xargs -r -n1 dirname | sort -u | sed 's|^|./|'
