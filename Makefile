# `make help` lists the targets. Prerequisites: Go 1.26, gcc (race detector), bash.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION   ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),dev)
REVISION  := $(shell git rev-parse HEAD 2>/dev/null)
STAMP     := -X main.version=$(VERSION) -X main.revision=$(REVISION)
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
KEEP      ?=
BENCH     ?= .
E2E_ARGS  ?=
FLUX      ?=
SOAK      ?= 10m
CLOUDS    := aws,azure,gcp
# Without kustomize's loader of Go plugins: nothing here loads code, and the binary is a quarter smaller.
PLUGINLESS := kustomize_disable_go_plugin_support
# What test/e2e shows that needs no newer field of Kubernetes; pinning comes on top.
CORE      := Namespace|Floor|Broken|Edits|ImageString|Helm|NoColumn|Policy|WhoMay|Audit|Provider|Warnings|WorkloadsAreDenied|DryRun|Exempt|Ratify
TAGS      ?=

.PHONY: help demo build test lint verify generate fuzz mutants bench interop e2e flux slow oldest soak dev image release clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: ## Run a registry and the provider in one process until Ctrl-C (DEMO_ARGS=--once exits by itself)
	go build -buildvcs=false -o bin/demo ./test/demo
	bin/demo $(DEMO_ARGS)

# What images and releases are made from: the commit and its time, not the clock.
ORIGIN = -version "$(VERSION)" -revision "$(REVISION)" \
  -epoch "$(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)"

# No -trimpath, except in images and releases: with it every dependency is compiled a second time, apart
# from what `go test` has compiled. That takes minutes and only shortens stack traces.
build: ## Build bin/landwaiter (TAGS=aws,azure,gcp for the clouds' key management services)
	go build -buildvcs=false -tags '$(PLUGINLESS),$(TAGS)' -ldflags "$(STAMP)" -o bin/landwaiter ./cmd/landwaiter

test: ## Run the tests with the race detector (needs gcc)
	@command -v "$$(go env CC)" >/dev/null || { \
	  echo "make test: the race detector needs a C compiler and $$(go env CC) is missing (Debian: apt-get install gcc libc6-dev)" >&2; exit 1; }
	go test -race -timeout 10m ./...
	go test -race -timeout 5m -tags $(CLOUDS) ./pkg/external
	go -C test/gator test -timeout 5m ./...

lint: ## Run go vet and the pinned golangci-lint (built once, minutes the first time)
	go vet ./...
	go vet -tags interop,e2e,flux,mutants,slow ./...
	go vet -tags $(CLOUDS) ./pkg/external ./cmd/landwaiter
	go -C test/gator vet ./...
	"$$(test/lint/build.sh)" run ./...

verify: lint ## Check format, lint, generated files, go.mod files, the architecture and that all is committed
	@unformatted=$$(gofmt -l api cmd config library pkg test); \
	  [[ -z "$$unformatted" ]] || { echo "verify: not formatted: $$unformatted" >&2; exit 1; }
	@generated() { cat api/*/zz_generated.*.go config/crd/*.yaml config/default/*.yaml config/guardrails/*.yaml library/*/template.yaml charts/*/files/crds/*.yaml charts/*/files/reports/*.yaml charts/*/README.md charts/tenant/values.schema.json docs/metrics.md docs/reference/*.md | sha256sum; }; \
	  before=$$(generated); $(MAKE) --no-print-directory generate; \
	  [[ "$$before" == "$$(generated)" ]] || { echo "verify: generated files were out of date; commit what make generate wrote" >&2; exit 1; }
	@for module in . config/tools test/gator test/lint test/tools test/tools/charts test/tools/cluster test/tools/flux test/tools/oras; do \
	  go -C "$$module" mod tidy -diff || { echo "verify: $$module/go.mod is not tidy" >&2; exit 1; }; done
	go test -count=1 ./test/arch/...
	@if git rev-parse --git-dir >/dev/null 2>&1; then \
	  dirty=$$(git status --porcelain); [[ -z "$$dirty" ]] || { printf 'verify: everything passes; commit these files to finish:\n%s\n' "$$dirty" >&2; exit 1; }; fi

generate: ## Write deep copies, CRDs, config/default, libraries in templates and the generated parts of docs
	go -C config/tools build -o "$(CURDIR)/bin/controller-gen" sigs.k8s.io/controller-tools/cmd/controller-gen
	bin/controller-gen object paths=./api/...
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
	charts/generate.sh
	LANDWAITER_UPDATE=1 go test -count=1 -run 'UpToDate$$' ./cmd/landwaiter ./test/docs ./test/library

fuzz: ## Run every fuzz target for FUZZTIME (default 30s; KEEP=8 keeps inputs of each)
	test/tools/fuzz.sh "$(FUZZTIME)" "$(KEEP)"

mutants: ## Take out the guard of each published incident and see its test fail (three minutes)
	go test -tags mutants -count=1 -timeout 60m -run '^TestWithoutItsGuardEachTestFails$$' ./test/incidents

bench: build ## Measure the figures of docs/performance.md, also as bin/*.json (builds the cluster of make e2e once)
	@test/tools/packages.sh
	go build -o bin/table ./test/bench/table
	go build -o bin/load ./test/bench/load
	go test ./test/bench ./test/library -run '^$$' -bench '$(BENCH)' -benchmem > bin/bench.txt
	bin/table -json bin/figures.json < bin/bench.txt
	eval "$$(test/tools/cluster.sh)"; bin/load -binary bin/landwaiter -json bin/load.json

interop: ## Check signatures made by cosign 2 and 3, with keys and real Sigstore servers (built once)
	tools=$$(test/tools/build.sh); servers=$$(test/tools/sigstore/build.sh); oras=$$(test/tools/oras/build.sh); \
	LANDWAITER_SIGSTORE_BIN="$$servers" LANDWAITER_COSIGN_V2="$$tools/cosign-v2" LANDWAITER_COSIGN_V3="$$tools/cosign-v3" LANDWAITER_ORAS="$$oras/oras" \
	  go test -race -timeout 10m -tags interop ./config/release ./test/interop/...

e2e: ## Test against a real kube-apiserver and Gatekeeper (built once, ten minutes)
	@test/tools/packages.sh runc prometheus
	@eval "$$(test/tools/cluster.sh)"; \
	go build -race -buildvcs=false -tags $(PLUGINLESS) -ldflags "$(STAMP)" -o bin/landwaiter-race ./cmd/landwaiter; \
	go build -race -buildvcs=false -tags '$(PLUGINLESS),$(CLOUDS)' -ldflags "$(STAMP)" -o bin/landwaiter-full-race ./cmd/landwaiter; \
	tools=$$(test/tools/build.sh); \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter-race" LANDWAITER_FULL_BINARY="$(CURDIR)/bin/landwaiter-full-race" LANDWAITER_COSIGN_V2="$$tools/cosign-v2" LANDWAITER_COSIGN_V3="$$tools/cosign-v3" \
	  go test -race -count=1 -p 1 -timeout 15m -tags e2e $(E2E_ARGS) ./api/... ./config/release ./pkg/cache ./pkg/controller ./pkg/warm ./test/bench/load ./test/charts ./test/dev ./test/e2e ./test/gitops ./test/guard ./test/identity ./test/image ./test/install ./test/live ./test/metrics ./test/people ./test/policies ./test/reach ./test/reports ./test/signer ./test/soak ./test/teams ./test/trees
	go test -count=1 -timeout 5m -tags e2e -run '^TestKnowsTheFieldsOfFlux$$' ./pkg/scaffold
	go build -buildvcs=false -tags $(PLUGINLESS) -ldflags "$(STAMP)" -o bin/landwaiter ./cmd/landwaiter
	LANDWAITER_PLAIN_BINARY="$(CURDIR)/bin/landwaiter" go test -count=1 -timeout 15m -tags e2e $(E2E_ARGS) ./test/hostile

flux: build ## Let teams' Git repositories loose with the real Flux controllers (built once, four minutes more than make e2e)
	@test/tools/packages.sh git
	@eval "$$(test/tools/cluster.sh)"; flux=$$(test/tools/flux/build.sh); \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter" LANDWAITER_FLUX_TOOLS="$$flux" \
	  go test -race -count=1 -timeout 15m -tags flux $(E2E_ARGS) ./test/gitops; \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter" LANDWAITER_FLUX_TOOLS="$$flux" LANDWAITER_COSIGN_V3="$$(test/tools/build.sh)/cosign-v3" \
	  go test -count=1 -timeout 15m -tags flux -run Flux $(E2E_ARGS) ./test/dev

slow: build ## Run what is too slow for .ci/run: each finding of doctor planted and mended, cold starts in every order, 201 teams in one loop, 10,000 pods in reports, what pinning per team costs
	@test/tools/packages.sh
	@eval "$$(test/tools/cluster.sh)"; \
	go build -race -buildvcs=false -tags $(PLUGINLESS) -ldflags "$(STAMP)" -o bin/landwaiter-race ./cmd/landwaiter; \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter-race" go test -race -count=1 -p 1 -timeout 15m -tags e2e $(E2E_ARGS) ./test/doctor ./test/coldstart; \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter" LANDWAITER_TEAMS=201 go test -count=1 -timeout 30m -tags e2e -v -run ManyTeams ./test/teams; \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter" LANDWAITER_PODS=10000 go test -count=1 -timeout 30m -tags e2e -v -run ManyPods ./test/reports; \
	LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter" go test -count=1 -timeout 30m -tags e2e,slow -v -run AdmissionWithTenants ./test/e2e

oldest: ## Run the core of make e2e on the oldest Kubernetes that is supported, with an older and this Gatekeeper (built once)
	@test/tools/packages.sh
	go build -race -buildvcs=false -tags $(PLUGINLESS) -ldflags "$(STAMP)" -o bin/landwaiter-race ./cmd/landwaiter
	@eval "$$(test/tools/cluster.sh)"; oldest=$$(test/tools/oldest/build.sh); export LANDWAITER_BINARY="$(CURDIR)/bin/landwaiter-race"; \
	LANDWAITER_CLUSTER_TOOLS="$$oldest" LANDWAITER_WITHOUT_PINNING=1 \
	  go test -race -count=1 -p 1 -timeout 15m -tags e2e -run '$(CORE)' $(E2E_ARGS) ./api/... ./test/e2e; \
	rm -rf bin/oldest; mkdir -p bin/oldest; ln -s "$$oldest"/kube* "$$LANDWAITER_CLUSTER_TOOLS"/gatekeeper* bin/oldest/; \
	LANDWAITER_CLUSTER_TOOLS="$(CURDIR)/bin/oldest" \
	  go test -race -count=1 -p 1 -timeout 15m -tags e2e -run '$(CORE)|Pinned' $(E2E_ARGS) ./test/e2e

soak: build ## Run load, changes, faults and attacks for SOAK each (default 10m); fails on a wrong verdict or on growth
	@test/tools/packages.sh
	LANDWAITER_SOAK="$(SOAK)" go test -race -count=1 -timeout 60m -tags e2e -v ./test/soak ./test/teams
	LANDWAITER_SOAK="$(SOAK)" LANDWAITER_PLAIN_BINARY="$(CURDIR)/bin/landwaiter" go test -count=1 -timeout 60m -tags e2e -v -run AllAttacks ./test/hostile

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
