#!/usr/bin/env bash
# Prints the packages with tests that have a build tag ("e2e", "nightly"), so that no list
# can forget one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tag=${1:?usage: test/tools/tagged.sh TAG}
grep -rlE "^//go:build (.*[ (!])?$tag( .*)?\$" --include='*_test.go' api cmd config pkg test | xargs -r grep -lE '^func Test[^M]' |
  xargs -r -n1 dirname | sort -u | sed 's|^|./|'
