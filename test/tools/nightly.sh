#!/usr/bin/env bash
# Runs slow tests, fuzzing, mutants and the oldest versions, part by part, and ends with a
# table. A part that passed is not run again until a file or a setting changes: what was
# interrupted resumes. With arguments it runs the parts that they name, also again. Results
# and logs are below bin/nightly, those of the last run in bin/nightly/latest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# core matches the tests that need no newer field of Kubernetes, but for newer, which needs the
# guardrails (Kubernetes 1.30). Those of pinning run with the current Gatekeeper only.
readonly core='Namespace|Mandatory|Broken|Edits|ImageString|Helm|NoColumn|Policy|WhoMay|AuditsAre|AuditWithout|AuditFinds|Provider|Warnings|WorkloadsAreDenied|DryRun|Exempt|Ratify'
readonly newer='BreakGlass'

# unused are the tags of the Makefile.
readonly unused='kustomize_disable_go_plugin_support,grpcnotrace'

# race runs go test with the race detector, which needs cgo.
race() { CGO_ENABLED=1 go test -race "$@"; }

# cluster exports what tests with a control plane need.
cluster() {
  test/tools/packages.sh runc prometheus git gpg gpg-agent
  exports=$(test/tools/cluster.sh && test/tools/programs.sh plain)
  eval "$exports"
}

# tagged FOLDER runs the nightly tests of one package, with the tools that it asks for.
tagged() {
  cluster
  local tools
  case $1 in
  ./test/evidence | ./config/release | ./test/install)
    tools=$(test/tools/build.sh)
    export LANDWAITER_COSIGN_V2="$tools/cosign-v2" LANDWAITER_COSIGN_V3="$tools/cosign-v3"
    ;;&
  ./test/evidence)
    LANDWAITER_SIGSTORE_BIN=$(test/tools/sigstore/build.sh)
    LANDWAITER_ORAS=$(test/tools/oras/build.sh)/oras
    LANDWAITER_REGISTRIES=$(test/tools/registries/build.sh)
    export LANDWAITER_SIGSTORE_BIN LANDWAITER_ORAS LANDWAITER_REGISTRIES
    test/tools/packages.sh docker-registry
    ;;
  ./test/gitops | ./test/dev | ./test/install)
    LANDWAITER_FLUX_TOOLS=$(test/tools/flux/build.sh)
    LANDWAITER_COSIGN_V3=$(test/tools/build.sh)/cosign-v3
    export LANDWAITER_FLUX_TOOLS LANDWAITER_COSIGN_V3
    ;;
  ./test/node)
    test/tools/packages.sh containerd runc
    [[ -e /usr/lib/cni/loopback ]] || apt-get install -q -y --no-install-recommends containernetworking-plugins >&2
    tools=$(test/tools/cluster/kubelet.sh)
    export LANDWAITER_KUBELET="$tools/kubelet" LANDWAITER_KEYRING="$tools/keyring"
    ;;
  esac
  case $1 in
  ./pkg/*) race -count=1 -timeout 60m -tags "nightly,$unused" -v "$1" ;;
  ./test/load) # the soak runs our packages in its own process; attackers must be fast
    race -count=1 -timeout 60m -tags "nightly,$unused" -v -run NothingGrows "$1"
    go test -count=1 -timeout 60m -tags "nightly,$unused" -v -skip NothingGrows "$1"
    ;;
  *) go test -count=1 -timeout 60m -tags "nightly,$unused" -v "$1" ;;
  esac
}

# oldest runs the core on the oldest Kubernetes that is supported, with the Gatekeeper of
# its time, and then with the current one.
oldest() {
  cluster
  local current=$LANDWAITER_CLUSTER_TOOLS tools
  tools=$(test/tools/older.sh oldest)
  LANDWAITER_CLUSTER_TOOLS=$tools LANDWAITER_WITHOUT_PINNING=1 \
    go test -count=1 -p 1 -timeout 15m -tags "e2e,$unused" -run "$core" -skip "$newer" ./api/... ./test/admission
  rm -rf bin/oldest
  mkdir -p bin/oldest
  ln -s "$tools"/kube* "$current"/gatekeeper* bin/oldest/
  LANDWAITER_CLUSTER_TOOLS=$PWD/bin/oldest \
    go test -count=1 -p 1 -timeout 15m -tags "e2e,$unused" -run "$core|Pinned" -skip "$newer" ./test/admission
}

# versions runs the core on one Kubernetes and one Gatekeeper: KUBERNETES and GATEKEEPER are
# oldest, middle or current. It runs only when it is named.
versions() {
  cluster
  local current=$LANDWAITER_CLUSTER_TOOLS tests="$core|Pinned" kubernetes gatekeeper
  local -a skip=()
  case ${KUBERNETES:-} in
  oldest) kubernetes=$(test/tools/older.sh oldest) skip=(-skip "$newer") ;;
  middle) kubernetes=$(test/tools/older.sh middle) ;;
  current) kubernetes=$current ;;
  *) echo "versions: set KUBERNETES to oldest, middle or current" >&2; return 64 ;;
  esac
  case ${GATEKEEPER:-} in
  oldest | middle) gatekeeper=$(test/tools/older.sh "$GATEKEEPER") tests=$core; export LANDWAITER_WITHOUT_PINNING=1 ;;
  current) gatekeeper=$current ;;
  *) echo "versions: set GATEKEEPER to oldest, middle or current" >&2; return 64 ;;
  esac
  rm -rf bin/versions
  mkdir -p bin/versions
  ln -s "$kubernetes"/kube* "$gatekeeper"/gatekeeper* bin/versions/
  LANDWAITER_CLUSTER_TOOLS=$PWD/bin/versions \
    go test -count=1 -p 1 -timeout 15m -tags "e2e,$unused" -run "$tests" "${skip[@]}" ./test/admission
}

# mutants breaks the guard of each published incident, and what each suite is about.
mutants() {
  cluster
  go test -tags "mutants,$unused" -count=1 -timeout 100m -v -run '^Test(WithoutItsGuardEachTestFails|EverySuiteNoticesItsMutant)$' ./test/arch
}

fuzz() { test/tools/fuzz.sh "${FUZZTIME:-10s}"; }

# trees builds the repositories of every layout in full; make test builds a sample.
trees() { race -count=1 -timeout 30m ./pkg/tenancy/scaffold ./cmd/landwaiter; }

# properties checks ten times as many generated cases as make test.
properties() {
  local packages
  packages=$(grep -rl --include='*_test.go' 'rapid\.Check(' api cmd pkg test | xargs -n1 dirname | sort -u | sed 's|^|./|')
  # The packages come first: go test takes what follows another's flag for its arguments.
  # shellcheck disable=SC2086
  race -count=1 -timeout 30m $packages -rapid.checks=1000
}

# clock runs the tests of make test on later days: nothing in the repository may expire.
clock() { env -u LANDWAITER_NIGHTLY test/tools/clock.sh ./...; }

# flakes runs every test of make test thirty times, shuffled: ten times each with one, two and four
# threads, beside processes that keep all cores busy. It ends with a table. Properties have the cases
# of make test, and the busy processes a lower priority: a test still waits for them at every turn.
flakes() {
  local -a busy=()
  for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
    nice -n 5 "$BASH" -c 'while :; do :; done' &
    busy+=("$!")
  done
  # shellcheck disable=SC2064 # these, whatever the variable is then
  trap "kill ${busy[*]}" EXIT
  env -u LANDWAITER_NIGHTLY go test -count=10 -cpu 1,2,4 -shuffle=on -timeout 60m ./... | tee /dev/stderr |
    awk '$1 == "ok" || $1 == "FAIL" && NF > 2 {printf "%-56s 30 runs %-6s %s\n", $2, $1 == "ok" ? "passed" : "FAILED", $3; failed += $1 == "FAIL"; n++}
      END {print n " packages, " failed + 0 " failed"}'
}

# tidy checks that the modules of tools that only this run builds have all that the tools need.
# What go mod tidy needs besides, for tests of their dependencies, proxies do not have any more.
tidy() {
  for module in test/tools test/tools/flux test/tools/oras test/tools/sigstore test/tools/middle test/tools/middle/gatekeeper test/tools/oldest test/tools/oldest/gatekeeper; do
    go -C "$module" list -mod=readonly -deps tool >/dev/null
  done
}

# parts lists all parts: the packages with nightly tests by their last name, and the rest.
parts() {
  test/tools/tagged.sh nightly | sed 's|.*/||'
  printf '%s\n' trees tidy properties clock flakes fuzz mutants oldest
}

# run PART runs one part.
run() {
  case $1 in
  trees | tidy | properties | clock | flakes | fuzz | mutants | oldest | versions) "$1" ;;
  *) tagged "$(test/tools/tagged.sh nightly | grep "/$1\$")" ;;
  esac
}

export LANDWAITER_NIGHTLY=1 LANDWAITER_SOAK=${LANDWAITER_SOAK:-1m} LANDWAITER_TEAMS=${LANDWAITER_TEAMS:-201} LANDWAITER_PODS=${LANDWAITER_PODS:-10000}

# key stands for all that a result depends on: the tree with what is not committed yet,
# settings, the version of Go.
key() {
  local changed
  changed=$(git stash create)
  {
    git rev-parse "${changed:-HEAD}^{tree}"
    git ls-files -z --others --exclude-standard | xargs -0 -r sha256sum
    go version
    env | grep -E '^(LANDWAITER_(NIGHTLY|SOAK|TEAMS|TENANTS|PODS|RECORD|PATIENCE)|FUZZTIME)=' | sort
  } | sha256sum | cut -c1-12
}

tree=$(key)
results=bin/nightly/$tree
mkdir -p "$results"
ln -sfn "$tree" bin/nightly/latest
all=$(parts)
chosen=${*:-$all}
for part in $chosen; do
  [[ $part == versions ]] || grep -qx "$part" <<<"$all" || { echo "nightly: there is no part $part; the parts are:" $all >&2; exit 64; }
done
for part in $chosen; do
  if [[ $# == 0 ]] && grep -qs '^passed' "$results/$part"; then
    echo "nightly: $part has passed on this tree (PART=$part runs it again)"
    continue
  fi
  echo "nightly: === $part ($(date -u +%H:%M:%SZ)), log in $results/$part.log"
  began=$SECONDS result=passed
  # A shell of its own, so that set -e holds in it.
  "$BASH" -c "$(declare -f race cluster tagged oldest mutants fuzz trees properties clock flakes tidy versions run); core='$core'; newer='$newer'; unused='$unused'; set -euo pipefail; run $part" >"$results/$part.log" 2>&1 || result=FAILED
  if [[ -z ${LANDWAITER_RECORD:-} && $(key) != "$tree" ]]; then
    echo "nightly: files changed while $part ran; start again" >&2
    exit 1
  fi
  echo "$result $((SECONDS - began)) $(grep -c '^ *--- PASS\|^ok' "$results/$part.log" || true)" >"$results/$part"
  if [[ $result == FAILED ]]; then
    grep -A 12 -e '--- FAIL' "$results/$part.log" | head -n 60 >&2 || tail -n 30 "$results/$part.log" >&2
    echo "nightly: $part failed; all it said is in $results/$part.log" >&2
  fi
done

echo
printf '%-14s %-8s %8s %7s\n' part result seconds passes
status=0 total=0
for part in $chosen; do
  { read -r result seconds passes <"$results/$part"; } 2>/dev/null || { result='not run' seconds=0 passes=0; }
  printf '%-14s %-8s %8d %7d\n' "$part" "$result" "$seconds" "$passes"
  total=$((total + seconds))
  if [[ $result == FAILED ]]; then status=1; fi
done
printf '%-14s %-8s %8d\n' total '' "$total"
exit "$status"
