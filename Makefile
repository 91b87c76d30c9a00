# Every target is one or two lines; what needs logic is a Go program.
SHELL := /bin/bash
.DEFAULT_GOAL := help

SEEDS  ?= 100000
FROM   ?= 1
TIME   ?= 30s
AGENTS := $(notdir $(wildcard plugins/engine-agent-*))
TOOL   := go tool -modfile=cmd/tools.mod
PGTEST := go run ./engine/internal/pgtest/cmd/pgtest
FUZZ   := dsl:FuzzParse dsl:FuzzFormat dsl:FuzzDecode dsl/lock:FuzzReadLock dsl:FuzzReply dsl:FuzzEvaluate sdk:FuzzCheck sdk/internal/fastjson:FuzzDecode sdk/jsonscan:FuzzTree sdk/plugin:FuzzCodec engine/machine:FuzzDecodeRecords engine/machine:FuzzDecodeEvent engine/store/sqlite:FuzzOpen
# Tests that `make race` leaves to `make test`: they run in processes without the race detector,
# or take minutes under it. Of the SQL stores it leaves out TestStore: one client after the other.
SERIAL := ^(TestSteady|TestVerbBehindALongQueue)$$
MODULE := github.com/saga-engine/engine
MODULES := cmd/bench examples/own-agent
PLATFORMS := linux darwin windows

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/engine and the built-in agents
	go build -o bin/ ./cmd/engine $(addprefix ./plugins/,$(AGENTS))

.PHONY: demo
demo: build ## run an order that succeeds and one that is undone, and show the shop's ledger
	go run ./examples/order-saga/demo

.PHONY: demo-orders
demo-orders: build postgres-binaries ## an order application on a private PostgreSQL: two engines, a kill, an operator, replies
	go build -o bin/ ./examples/order-saga/shop ./examples/order-processing/orders
	$(PGTEST) run -- bash -c 'go run ./examples/order-processing/demo --dsn "$$ENGINE_TEST_DSN"'

# The longest packages first, so that no processor waits for them in the end. Three packages at once
# keep two processors busy, because many tests wait. `make lint` vets.
# The faults run alone: their engines have leases of one second, which other tests would take.
LONGEST := ./engine/store/postgres ./cmd/engine ./engine/machine ./engine/agents ./engine/internal/hostile ./examples ./engine/internal/sim ./sdk/plugin ./dsl ./engine
.PHONY: test
test: postgres-binaries ## every test, on the embedded store and on a private PostgreSQL
	$(PGTEST) run -- go test -vet=off -p 3 -timeout 20m $(LONGEST) $$(go list ./... | grep -vxF -e $(MODULE)/engine/internal/chaos $(patsubst ./%,-e $(MODULE)/%,$(LONGEST)))
	$(PGTEST) run -- go test -vet=off -timeout 20m ./engine/internal/chaos
	@for m in $(MODULES); do echo "(cd $$m && go test ./...)"; (cd $$m && go test ./...) || exit 1; done

.PHONY: postgres-binaries
postgres-binaries:
	@./engine/internal/pgtest/install.sh

.PHONY: test-unit
test-unit: ## the tests that need neither a database nor built binaries
	go test ./dsl/... ./sdk ./sdk/sdktest ./engine ./engine/machine/... ./engine/internal/wire ./engine/story ./engine/store/memory/... ./docs/...

.PHONY: race
race: postgres-binaries ## the race detector, for the packages that have goroutines; SHORT=1: only inside the engine
	go test -race -timeout 20m -skip '$(SERIAL)' ./engine ./engine/internal/call ./engine/internal/clock ./engine/internal/commit ./engine/internal/owner ./engine/store/memory/...
	$(if $(SHORT),,$(PGTEST) run -- go test -race -timeout 20m -skip '$(SERIAL)|^TestStore' ./engine/agents/... ./engine/internal/sim/... ./engine/store/sqlite ./engine/store/postgres ./sdk/... ./plugins/...)

.PHONY: sim
sim: ## simulate SEEDS=100000 random workflows in random worlds, and as many worlds of whole engines, from FROM=1 on
	SIM_SEEDS=$(SEEDS) go test -count=1 -timeout 4h -run TestPromises ./engine/machine
	SIM_SEEDS=$(SEEDS) SIM_FROM=$(FROM) go test -count=1 -timeout 4h -run TestSteady ./engine/internal/sim

.PHONY: chaos
chaos: postgres-binaries ## faults on real engines and agents, as in docs/reliability.md; three hours on two CPUs, a seventh of it with SHORT=1
	@mkdir -p bin
	CHAOS=$(if $(SHORT),part,full) go test -count=1 -p 1 -timeout 2h -run 'T10|Rogue' ./engine/agents ./sdk/plugin
	CHAOS=$(if $(SHORT),part,full) $(PGTEST) run -- go test -count=1 -timeout 2h -run TestManyRows ./engine/internal/selects
	CHAOS=$(if $(SHORT),part,full) $(PGTEST) run -- go test -count=1 -timeout 6h -parallel 16 ./engine/internal/chaos -v 2>&1 | tee bin/chaos.log | grep -E '^(---|ok|FAIL|panic|\||    [a-z_]+\.go)' ; exit $${PIPESTATUS[0]}

.PHONY: hostile
hostile: postgres-binaries ## every case of testdata/hostile against the built command: memory, CPU time, messages; ten minutes
	HOSTILE=all go test -count=1 -timeout 60m ./engine/internal/hostile

.PHONY: matrix
matrix: postgres-binaries ## every verb on runs with every feature of the language, on one real engine; five to ten minutes
	MATRIX=all $(PGTEST) run -- go test -count=1 -timeout 60m -run TestMatrix ./cmd/engine

.PHONY: mutants
mutants: postgres-binaries ## plant deliberate faults everywhere, one at a time, and see each of them caught; two hours
	MUTANTS=all go test -count=1 -timeout 60m -run Mutant ./engine/machine/... ./engine/internal/sim
	MUTANTS=build go test -count=1 -timeout 60m -run TestEntriesBuild ./engine/internal/planted
	MUTANTS=all $(PGTEST) run -- go test -count=1 -timeout 3h -v ./engine/internal/planted

.PHONY: fuzz
fuzz: ## fuzz each target for TIME=30s
	@for f in $(FUZZ); do echo "fuzz $$f"; go test -run '^$$' -fuzz "^$${f#*:}$$" -fuzztime $(TIME) ./$${f%%:*} || exit 1; done

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, figures and layers of the packages, and that the module files are tidy
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these files"; exit 1; }
	go vet ./...
	go test ./docs ./engine -run 'TestFigures|TestDeclarations|TestArrows|TestLayers'
	$(TOOL) staticcheck ./...
	cd cmd/bench && go tool -modfile=../tools.mod staticcheck ./...
	go mod tidy -diff
	@for m in $(MODULES); do echo "(cd $$m && go vet ./... && go mod tidy -diff)"; (cd $$m && go vet ./... && go mod tidy -diff) || exit 1; done

.PHONY: platforms
platforms: ## build for every platform
	@for p in $(PLATFORMS); do echo "GOOS=$$p go build ./cmd/engine ./sdk/... ./plugins/..."; GOOS=$$p CGO_ENABLED=0 go build ./cmd/engine ./sdk/... ./plugins/... || exit 1; done

.PHONY: vuln
vuln: ## look for known vulnerabilities; asks the Go vulnerability database, and says so if it does not answer
	go run ./cmd/internal/vuln

.PHONY: cover
cover: postgres-binaries ## coverage per package
	@mkdir -p bin
	$(PGTEST) run -- go test -timeout 20m -coverprofile=bin/cover.out -coverpkg=./... ./... && go tool cover -func=bin/cover.out | tail -1

.PHONY: bench
bench: build postgres-binaries ## every figure of docs/performance.md beside its yardstick, in 35 minutes (SHORT=1: the main ones, in five; ONLY=PART,…)
	go -C cmd/bench build -o ../../bin/bench .
	$(PGTEST) run -- bin/bench -tune $(if $(SHORT),-short) $(if $(ONLY),-only $(ONLY)) $(BENCHFLAGS)

.PHONY: comments
comments: ## print 200 comments drawn at random (SEED=1), for a reader to judge
	@go run ./engine/internal/comments -seed $(or $(SEED),1)

.PHONY: examples
examples: postgres-binaries ## run every example with real processes
	$(PGTEST) run -- go test -count=1 ./examples/...

.PHONY: golden
golden: postgres-binaries ## rewrite the golden files; read the diff afterwards
	go test ./dsl ./cmd/engine/render -update
	UPDATE_SCRIPTS=1 $(PGTEST) run -- go test ./cmd/engine

.PHONY: generate
generate: ## run the code generators (needs protoc) with the pinned plugins
	GOBIN=$(CURDIR)/bin/tools go install -modfile=cmd/tools.mod tool && PATH=$(CURDIR)/bin/tools:$$PATH go generate ./...

.PHONY: tidy
tidy: ## tidy the module files and format the code
	go mod tidy && $(TOOL) gofumpt -w $$(git ls-files '*.go' | grep -v '\.pb\.go$$')

.PHONY: check
check: demo lint test platforms race vuln ## what CI runs, in order
