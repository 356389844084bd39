# What people run; `make test` and `make lint` are what CI runs.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := build

PKG      ?= ./...
TIMEOUT  ?= 15m
FUZZTIME ?= 10s
N        ?= 100
BENCH    ?=
FLAGS    ?=

.PHONY: build run test lint bench fuzz crash clean

build: ## compile everything
	go build ./...

run: ## start a local server
	@echo "There is no server to start yet: it comes with SQL. Today Trireme is a storage engine,"
	@echo "used from Go: see 'A first session' in README.md. Try 'make test' or 'make crash'."

test: bin/testsum ## all tests with the race detector, and the house rules
	go test -race -timeout $(TIMEOUT) -json $(PKG) | bin/testsum

lint: bin/staticcheck ## formatting, vet, staticcheck
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
	if [ -n "$$files" ]; then echo "not formatted:"; echo "$$files"; exit 1; fi
	go vet ./...
	bin/staticcheck ./...

bench: ## the storage engine beside others (FLAGS=-quick: a minute); with BENCH, Go benchmarks that match
ifeq ($(BENCH),)
	go -C bench run ./storage $(FLAGS)
else
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)
endif

fuzz: ## every fuzz target for FUZZTIME
	@grep -rHoE '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' . | sort | \
	while IFS=: read -r file decl; do \
		echo "== $$(dirname $$file) $${decl#func }"; \
		go test -run '^$$' -fuzz "^$${decl#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" </dev/null; \
	done

crash: ## N seeded crashes of the storage engine, each recovered and checked
	go test -count=1 -timeout 0 ./engine/storage/crashtest -run TestCrash -args -crash.n=$(N)

clean:
	rm -rf bin

bin/testsum: $(wildcard tools/testsum/*.go) tools/go.mod
	go -C tools build -o ../bin/testsum ./testsum

bin/staticcheck: tools/go.mod tools/go.sum
	go -C tools build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
