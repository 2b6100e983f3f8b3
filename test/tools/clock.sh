#!/usr/bin/env bash
# Runs go test with the given arguments, each package in 60 days, in 400 days and in ten years: an overlay
# of Go's time.Now moves the clock of test binaries by LANDWAITER_CLOCK days. Bubbles of testing/synctest and
# other programs keep their own clock.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

goroot=$(go env GOROOT)
# A folder that ./... leaves out.
mkdir -p bin/_clock
cat >bin/_clock/ahead.go <<'GO'
package time

import "syscall"

var ahead = func() int64 {
	text, _ := syscall.Getenv("LANDWAITER_CLOCK")
	days, _ := atoi(text)
	return int64(days) * secondsPerDay
}()
GO
sed '/^func Now() Time {$/,/^}$/ s|^\tsec, nsec, mono := runtimeNow()$|&\n\tif !runtimeIsBubbled() {\n\t\tsec += ahead\n\t}|' \
  "$goroot/src/time/time.go" >bin/_clock/time.go
grep -q 'sec += ahead' bin/_clock/time.go || { echo "clock: time.Now of $(go version) is not as expected" >&2; exit 1; }
printf '{"Replace": {"%s": "%s", "%s": "%s"}}\n' "$goroot/src/time/time.go" "$PWD/bin/_clock/time.go" \
  "$goroot/src/time/ahead.go" "$PWD/bin/_clock/ahead.go" >bin/_clock/overlay.json

# shellcheck disable=SC2016 # the inner shell expands these
go test -count=1 -timeout 30m -overlay bin/_clock/overlay.json \
  -exec "$BASH -c 'for days in 60 400 3653; do echo clock: in \$days days; LANDWAITER_CLOCK=\$days \"\$@\" || exit; done' clock" "$@"
