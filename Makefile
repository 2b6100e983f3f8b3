# `make help` lists the targets. make demo and make test need Go 1.26, git and bash.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION   ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
REVISION  := $(shell git rev-parse HEAD 2>/dev/null)
PROGRAM   := github.com/landwaiter/landwaiter/cmd/internal/program
STAMP     := -X $(PROGRAM).version=$(VERSION) -X $(PROGRAM).revision=$(REVISION)
IMAGE     ?= landwaiter:$(VERSION)
DOCKER    ?=
PUSH      ?=
PLATFORMS ?= linux/amd64,linux/arm64
VARIANTS  ?= default,full
LAYOUT    ?= bin/image
RELEASE   ?= dist
COSIGN_KEY ?=
UNSIGNED  ?=
DEMO_ARGS ?=
FUZZTIME  ?= 30s
BENCH     ?= .
TEST_ARGS ?=
RACE      ?=
PACKAGES  ?= $(if $(RACE),$$(test/tools/concurrent.sh),./...)
E2E_ARGS  ?=
SOAK      ?= 10m
PART      ?=
LOOK      ?=
KUBERNETES ?=
GATEKEEPER ?=
WARNINGS  ?=
CLOUDS    := aws,azure,gcp
# Without kustomize's loader of Go plugins and gRPC's traces: nothing here uses them, and the linker
# keeps every method of every type with them, half of the binary.
UNUSED    := kustomize_disable_go_plugin_support,grpcnotrace
TAGS      ?=
# With the same flags everywhere, no target compiles again what another one did: -trimpath lets a
# clone at another path find it too, and without cgo no C compiler is needed. Only debuggers read
# DWARF, a tenth of all work. make lint vets; before each go test it would read every dependency again,
# for minutes.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -vet=off -trimpath -gcflags=all=-dwarf=false -ldflags=-w -tags=$(UNUSED))
export CGO_ENABLED := 0
DEFAULT := -exec "env -u GOGC -u GOMEMLIMIT"
# The race detector needs cgo, and compiles everything a second time.
DETECT := CGO_ENABLED=1 go test -race $(DEFAULT)
# Compilers take a sixth less time if they collect no garbage below 1 GiB, and linters with more
# memory. Programs of make e2e, and tests with the race detector's own memory, get Go's default.
demo build test generate derived e2e image release: export GOGC := off
demo build test generate derived e2e image release: export GOMEMLIMIT := 1GiB
lint words: export GOGC := 400

.PHONY: help demo build test lint verify words generate derived docs fuzz mutants bench e2e nightly soak dev image release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: ## Run a registry and the provider in one process until Ctrl-C (DEMO_ARGS=--once exits by itself)
	go build -buildvcs=false -o bin/demo ./test/demo
	bin/demo $(DEMO_ARGS)

# What images and releases are made from: the commit and its time, not the clock.
ORIGIN = -version "$(VERSION)" -revision "$(REVISION)" \
  -epoch "$(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)"

build: ## Build bin/landwaiter and bin/landwaiter-server (TAGS=aws,azure,gcp for the clouds' key management services)
	go build -buildvcs=false -tags '$(UNUSED),$(TAGS)' -ldflags "$(STAMP)" -o bin/ ./cmd/...

test: ## Run the tests (RACE=1 runs those of concurrent packages with the race detector, which needs gcc)
ifeq ($(RACE),)
	go test -timeout 5m $(TEST_ARGS) $(PACKAGES)
else
	@command -v "$$(go env CC)" >/dev/null || { \
	  echo "make test RACE=1: the race detector needs a C compiler and $$(go env CC) is missing (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
	$(DETECT) -timeout 10m $(TEST_ARGS) $(PACKAGES)
endif

# Two packages have files that only build without some of these tags.
lint: ## Run the pinned golangci-lint, go vet with it (built once, minutes the first time)
	@lint=$$(test/tools/lint/build.sh); set -x; "$$lint" run --build-tags e2e,nightly,mutants,$(CLOUDS),$(UNUSED) ./...; \
	"$$lint" run --build-tags nightly,$(UNUSED) ./test/evidence ./pkg/remote/external; "$$lint" run --build-tags $(UNUSED) ./test/evidence; \
	cd test/library/gator; "$$lint" run ./...

words: ## Check the sentences of pages, comments, help and messages with Vale (WARNINGS=1 prints warnings too)
	@WARNINGS="$(WARNINGS)" test/tools/words.sh

verify: lint words ## Check what make test does not: format, lint, words, derived files, go.mod files, and that all is committed
	@unformatted=$$(gofmt -l api cmd config library pkg test); \
	  [[ -z "$$unformatted" ]] || { echo "verify: not formatted: $$unformatted" >&2; exit 1; }
	@generated() { cat api/*/zz_generated.*.go config/crd/*.yaml config/default/*.yaml config/guardrails/*.yaml charts/*/files/crds/*.yaml charts/*/files/pieces/*.yaml charts/*/files/reports/*.yaml | sha256sum; }; \
	  before=$$(generated); $(MAKE) --no-print-directory derived; \
	  [[ "$$before" == "$$(generated)" ]] || { echo "verify: generated files were out of date; commit what make generate wrote" >&2; exit 1; }
	@for module in . config/tools test/library/gator test/tools/charts test/tools/cluster test/tools/lint test/tools/vale; do \
	  go -C "$$module" mod tidy -diff || { echo "verify: $$module/go.mod is not tidy" >&2; exit 1; }; done
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
	  dirty=$$(git status --porcelain); [[ -z "$$dirty" ]] || { printf 'verify: everything passes; commit these files to finish:\n%s\n' "$$dirty" >&2; exit 1; }; fi

generate: derived ## Write deep copies, CRDs, config/default, libraries in templates and the generated parts of docs
	LANDWAITER_UPDATE=1 go test -count=1 -run 'UpToDate$$' ./cmd/... ./test/docs ./test/library ./test/load/scale

derived: ## Write what needs controller-gen and Helm: deep copies, CRDs, config/default
	go -C config/tools build -o "$(CURDIR)/bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen
	bin/controller-gen object paths=./api/...
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
	charts/generate.sh

docs: docs/node_modules/.package-lock.json ## Build the site of docs into docs/.vitepress/dist (LOOK=1 looks at it in Chromium; needs Node.js and npm)
	cd docs && npm run -s build$(if $(LOOK), && npm run -s test)

# Only this step downloads.
docs/node_modules/.package-lock.json: docs/package-lock.json
	@command -v npm >/dev/null || { echo "make docs: npm is missing (Debian: apt-get install nodejs npm)" >&2; exit 1; }
	cd docs && npm ci --no-audit --no-fund
	@touch $@

fuzz: ## Run every fuzz target for FUZZTIME (default 30s; KEEP=8 keeps inputs of each)
	test/tools/fuzz.sh "$(FUZZTIME)" "$(KEEP)"

mutants: ## Break the code: take out each guard, plant each fault, and check that the named test fails
	test/tools/nightly.sh mutants

bench: build ## Measure the figures of docs/design/performance.md, also as bin/*.json (builds the cluster of make e2e once)
	@test/tools/packages.sh
	go build -o bin/table ./test/load/table
	go build -o bin/ladder ./test/load/ladder
	go test ./test/load ./test/library -run '^$$' -bench '$(BENCH)' -benchmem > bin/bench.txt
	bin/table -json bin/figures.json < bin/bench.txt
	exports=$$(test/tools/cluster.sh); eval "$$exports"; bin/ladder -binary bin/landwaiter-server -json bin/load.json

# Tests that run our packages in their own process have the race detector, those that run the program need none.
e2e: ## Test against a real kube-apiserver, Gatekeeper and Redis (E2E_ARGS="-run …"; built once, ten minutes)
	@test/tools/packages.sh prometheus chromium npm
	@exports=$$(test/tools/cluster.sh && test/tools/programs.sh); eval "$$exports"; LANDWAITER_AXE=$$(test/tools/axe/build.sh); export LANDWAITER_AXE; own='^\./pkg|^\./test/load$$' tests=$$(test/tools/tagged.sh e2e tests); \
	$(DETECT) -count=1 -p 2 -timeout 25m -tags e2e,$(UNUSED) -run "$$tests" $(E2E_ARGS) $$(test/tools/tagged.sh e2e | grep -E "$$own"); \
	go test $(DEFAULT) -count=1 -p 2 -timeout 25m -tags e2e,$(UNUSED) -run "$$tests" $(E2E_ARGS) $$(test/tools/tagged.sh e2e | grep -vE "$$own")
	$(DETECT) -count=1 -timeout 5m -tags $(CLOUDS),$(UNUSED) ./pkg/remote/external
	go -C test/library/gator test -count=1 -timeout 5m ./...

nightly: ## Run slow tests, fuzzing, mutants, oldest versions; resumes (PART="oldest fuzz" runs these); ends with a table
	KUBERNETES="$(KUBERNETES)" GATEKEEPER="$(GATEKEEPER)" test/tools/nightly.sh $(PART)

soak: ## Run load, changes, faults and attacks for SOAK each (default 10m); fails on a wrong verdict or on growth
	@test/tools/packages.sh
	@exports=$$(test/tools/programs.sh plain); eval "$$exports"; export LANDWAITER_SOAK="$(SOAK)"; \
	$(DETECT) -count=1 -timeout 60m -tags nightly,$(UNUSED) -v -run NothingGrows ./test/load; \
	go test -count=1 -timeout 60m -tags nightly,$(UNUSED) -v -run AllAttacks ./test/load

dev: ## Run the cluster of make e2e with two teams until Ctrl-C, for kubectl (FLUX=1 adds Flux and a Git repository)
	@exec test/dev/run.sh "$(FLUX)"

image: ## Build the images IMAGE and IMAGE-full into bin/image, and push them with PUSH=1 (DOCKER=docker uses Docker)
ifeq ($(DOCKER),)
	go build -buildvcs=false -o bin/release ./config/release
	bin/release image $(ORIGIN) -image "$(IMAGE)" -platforms "$(PLATFORMS)" -variants "$(VARIANTS)" -out "$(LAYOUT)" $(if $(PUSH),-push)
else
	$(DOCKER) build --build-arg VERSION="$(VERSION)" --build-arg REVISION="$(REVISION)" -t "$(IMAGE)" .
	$(DOCKER) build --build-arg VERSION="$(VERSION)" --build-arg REVISION="$(REVISION)" --build-arg TAGS="$(CLOUDS)" -t "$(IMAGE)-full" .
	$(if $(PUSH),$(DOCKER) push "$(IMAGE)" && $(DOCKER) push "$(IMAGE)-full")
endif

release: ## Make binaries, images, chart, SBOMs and checksums in RELEASE (default dist), signed with COSIGN_KEY or UNSIGNED=1
	@[[ -n "$(COSIGN_KEY)$(UNSIGNED)" ]] || { echo "make release: give COSIGN_KEY=cosign.key to sign with, or UNSIGNED=1 for a trial" >&2; exit 1; }
	go build -buildvcs=false -o bin/release ./config/release
	bin/release dist $(ORIGIN) -out "$(RELEASE)" $(if $(UNSIGNED),-unsigned,-key "$(COSIGN_KEY)" -cosign "$$(test/tools/build.sh)/cosign-v3")

clean: ## Remove bin
	rm -rf bin
