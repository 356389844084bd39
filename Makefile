# What people run; `make lint`, `make test` and `make test-race` come first in CI.

SHELL       := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := build

# What waits most begins first.
PKG      ?= ./server/node ./e2e/... ./replication/... ./...
RACE_PKG ?= $(shell go list $(PKG) | grep -v /e2e/)
TIMEOUT  ?= 15m
RACE_TIMEOUT ?= 30m
# Packages tested at once, and tests of one: groups of nodes wait more than they compute.
PACKAGES ?= $(shell echo $$(( 5 * $$(nproc) / 2 )))
PARALLEL ?= $(shell echo $$(( 3 * $$(nproc) )))
FUZZTIME ?= 10s
DURATION ?= 1m
N        ?= 100
BENCH    ?=
FLAGS    ?=
SEEDS      ?= 20
FIRST_SEED ?= 1
SIMULATED  ?= 200
ORACLE_N    ?= 20000
ORACLE_SEED ?= 1
COMBINATIONS      ?= 10
FIRST_COMBINATION ?= 0

.PHONY: build run test test-quick test-race profile simulate e2e lint proto bench fuzz crash clean test-etcd test-mariadb test-mysql test-oracles binlog-oracles test-clients test-network test-chart test-monitoring test-console e2e-kubernetes e2e-kubernetes-notwhole test-python compat proto-python load test-load rights-answers

build: ## compile everything
	go build ./...

run: bin/trireme ## a group of three nodes on this machine, until ^C; their data stay in trireme-demo
	bin/trireme demo $(FLAGS)

# Beside many others they would take longest: simulated groups compute all the time, those of real processes need many processors.
APART = %/replication/group %/replication/simgroup %/e2e/sql

test: TESTED = $(shell go list $(PKG))
test: bin/testsum ## all tests, the house rules, and simulated lives of a group
	$(if $(filter-out $(APART),$(TESTED)),go test -p $(PACKAGES) -parallel $(PARALLEL) -pgo=off -timeout $(TIMEOUT) -json $(filter-out $(APART),$(TESTED)) | bin/testsum)
	$(if $(filter $(APART),$(TESTED)),go test -p $(shell nproc) -parallel $(PARALLEL) -pgo=off -timeout $(TIMEOUT) -json $(filter $(APART),$(TESTED)) | bin/testsum)
	go test -pgo=off -count=1 -timeout $(TIMEOUT) -json ./replication/simgroup -run 'TestSimulate$$' -args -sim.n=$(SIMULATED) -sim.procs=$(shell nproc) | bin/testsum

QUICK = $(filter-out $(APART) %/server/node %/client %/cmd/trireme %/replication/backup %/replication/bodies %/storage/crashtest %/sessiontest,$(shell go list ./... | grep -v /e2e/))
test-quick: bin/testsum ## between two edits: all but tests of groups, of whole servers and of crashes, and a few simulated lives
	go test -p $(PACKAGES) -parallel $(PARALLEL) -pgo=off -skip Crash -timeout $(TIMEOUT) -json $(QUICK) | bin/testsum
	go test -pgo=off -count=1 -timeout $(TIMEOUT) -json ./replication/simgroup -run 'TestSimulate$$' -args -sim.n=5 -sim.procs=$(shell nproc) | bin/testsum

test-race: bin/testsum ## all tests with the race detector but those of real processes, which it does not see; computations do less under it (internal/race)
	GORACE=atexit_sleep_ms=20 go test -race -p $$(( 2 * $$(nproc) )) -pgo=off -timeout $(RACE_TIMEOUT) -json $(RACE_PKG) | bin/testsum

simulate: ## SEEDS simulated lives of a group under faults, from FIRST_SEED on
	go test -v -count=1 -timeout 0 ./replication/simgroup -run 'TestSimulate$$' -args -sim.n=$(SEEDS) -sim.seed=$(FIRST_SEED) -sim.v -sim.procs=$(shell nproc)

test-mariadb: ## random queries here and in MariaDB (Debian's mariadb-server)
	go vet -tags oracles ./e2e/oracle
	go test -count=1 -tags oracles ./e2e/oracle -run 'TestOracle$$'

test-mysql: ## ORACLE_N random statements of all types here and in MySQL 9.7 from ORACLE_SEED on, and checks of ours alone; MYSQL is the data source name of one, such as root@unix(/run/mysqld/mysqld.sock)/
	go vet -tags oracles ./e2e/oracle
	go test -count=1 -timeout 0 -v -tags oracles ./e2e/oracle -run 'TestMySQL$$' -args -oracle.mysql='$(MYSQL)' -oracle.n=$(ORACLE_N) -oracle.seed=$(ORACLE_SEED) $(FLAGS)

rights-answers: ## record what MySQL 9.7 answers to the statements of TestRights; MYSQL is the data source name of an empty one
	go test -count=1 -timeout 0 ./engine/session/sessiontest -run 'TestRights$$' -args -rights.mysql='$(MYSQL)'

test-network: ## a group whose nodes have networks of their own, when cables are pulled or larger packets are lost (Linux, iptables; root, or user namespaces)
	go vet -tags network ./e2e/sql
	go test -count=1 -timeout 0 -tags network -v ./e2e/sql -run 'TestPulledCables|TestLargerPacketsAreLost' -args -e2e.duration=$(DURATION)

test-etcd: ## the registry against a real etcd; a module of its own, for the server's sake
	go -C e2e/etcd vet ./...
	go -C e2e/etcd test -count=1 ./...

e2e: ## a group of real processes under kill -9, pauses, replacements, cuts and full disks, each test for DURATION
	go test -count=1 -timeout 0 -v ./e2e/... -args -e2e.duration=$(DURATION)

test-oracles: binlog-oracles ## what leaves the house is read by decoders that are not ours
	go vet -tags oracles ./engine/binlog/event
	go test -count=1 -tags oracles -run Oracles ./engine/binlog/event

test-clients: bin/trireme bin/clients/python/installed bin/clients/node/installed bin/clients/java/clients.jar ## existing drivers, ORMs and tools against servers
	go vet -tags clients ./e2e/clients
	go test -count=1 -timeout 15m -tags clients ./e2e/clients

compat: bin/compat/installed ## the test suites of drivers and frameworks against a server, about an hour; FLAGS="-run Django -args -compat.django=queries" for a part (Debian's libmariadb-dev)
	go vet -tags compat ./e2e/compat
	go test -v -count=1 -timeout 0 -tags compat ./e2e/compat $(FLAGS)

binlog-oracles: bin/java/binlogdecode.jar bin/rust/debug/binlogdecode ## those decoders, of Java and Rust

test-chart: bin/trireme ## what the Helm chart renders is what Kubernetes knows and the server takes; a module of its own, for Helm's and Kubernetes' sake
	CGO_ENABLED=0 go -C e2e/chart vet ./...
	CGO_ENABLED=0 go -C e2e/chart test -count=1 -timeout 30m ./...

test-monitoring: ## alert rules and dashboards against a Prometheus (Debian's prometheus) that watches groups through a fault for each alert
	go vet -tags monitoring ./e2e/monitoring
	go test -count=1 -timeout 15m -tags monitoring ./e2e/monitoring

test-console: ## the web console in a browser (Debian's chromium); a module of its own, for the browser driver's sake
	go -C e2e/console vet ./...
	go -C e2e/console test -count=1 ./...

e2e-kubernetes: bin/kubernetes/built ## the Helm chart on a real Kubernetes of three nodes (Linux, root, containerd, runc, containernetworking-plugins, iptables)
	go vet -tags kubernetes ./e2e/kubernetes
	go test -count=1 -timeout 0 -tags kubernetes -v ./e2e/kubernetes $(FLAGS)

e2e-kubernetes-notwhole: bin/kubernetes/built ## there: COMBINATIONS of what happens to a group and why a member is not whole, from the seed FIRST_COMBINATION on
	go vet -tags kubernetes ./e2e/kubernetes
	go test -count=1 -timeout 0 -tags kubernetes -v ./e2e/kubernetes -args -e2e.combinations=$(COMBINATIONS) -e2e.seed=$(FIRST_COMBINATION) $(FLAGS)

load: bin/k6 ## load over gRPC by k6, with thresholds: SCENARIO, DURATION, VUS; ADDRESS for a group of one's own (docs/load.md)
	go run ./e2e/k6

test-load: bin/k6 ## k6's scripts for two seconds each
	go vet -tags load ./e2e/k6
	go test -count=1 -tags load ./e2e/k6

lint: bin/staticcheck bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc ## formatting, vet, staticcheck, contracts
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r ls -d 2>/dev/null | xargs -r gofmt -l); \
	if [ -n "$$files" ]; then echo "not formatted:"; echo "$$files"; exit 1; fi
	go vet ./...
	bin/staticcheck ./...
	cd proto && ../bin/buf lint && ../bin/buf breaking --against contract.txtpb
	@cd proto && $(contract) >../bin/.contract.txtpb && diff -qw ../bin/.contract.txtpb contract.txtpb >/dev/null || { echo "proto/contract.txtpb is not the contract: run 'make proto'"; exit 1; }
	@rm -rf bin/.generated && cd proto && ../bin/buf generate -o ../bin/.generated && cd trireme/v1 && \
	for f in *.pb.go; do cmp $$f ../../../bin/.generated/trireme/v1/$$f || { echo "run 'make proto'"; exit 1; }; done

# The contract as buf compares it with the next one. Without a place for comments it takes no image.
contract = ../bin/buf build --exclude-source-info -o -\#format=txtpb | sed 's/^  syntax: "proto3"$$/&\n  source_code_info: {}/'

proto: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc ## generate Go from the contracts, which may not break what was; with BREAKING=1 they may
ifeq ($(BREAKING),)
	cd proto && ../bin/buf breaking --against contract.txtpb
endif
	cd proto && ../bin/buf generate
	cd proto && $(contract) >../bin/.contract.txtpb && mv ../bin/.contract.txtpb contract.txtpb

test-python: bin/trireme bin/sdk/python/installed ## the Python SDK: types, style, and tests against groups of real processes
	cd sdk/python && ../../bin/sdk/python/bin/ruff check --no-cache .
	cd sdk/python && ../../bin/sdk/python/bin/mypy --cache-dir ../../bin/sdk/mypy
	cd sdk/python && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. ../../bin/sdk/python/bin/pytest

proto-python: bin/sdk/python/installed ## generate Python from the contract
	bin/sdk/python/bin/python -m grpc_tools.protoc -I proto --python_out=sdk/python --pyi_out=sdk/python trireme/v1/sql.proto

bench: ## the storage engine, a group of nodes, SQL, queries over many rows, short statements beside them, large transactions and gRPC beside others (FLAGS=-quick: minutes); with BENCH, Go benchmarks that match
ifeq ($(BENCH),)
	go -C bench run ./storage $(FLAGS)
	go -C bench run ./group $(FLAGS)
	go -C bench run ./sql $(FLAGS)
	go -C bench run ./sql -nodes 3 $(FLAGS)
	go -C bench run ./tpcc $(FLAGS) beside
	go -C bench run ./analytics $(FLAGS)
	go -C bench run ./mixed $(FLAGS)
	go -C bench run ./ddl $(FLAGS)
	go -C bench run ./ddl -nodes 3 $(FLAGS)
	go -C bench run ./large $(FLAGS)
	go -C bench run ./large -nodes 3 $(FLAGS)
	go -C bench run ./grpc $(FLAGS)
else
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)
endif

profile: ## measure anew what the compiler goes by, cmd/trireme/default.pgo; about ten minutes
	rm -rf bin/profiles
	go -C bench run ./sql -only trireme -rows 100000 -rounds 1 -seconds 6 -threads 1,8 -report "" -profiles $(CURDIR)/bin/profiles
	go -C bench run ./tpcc -only trireme -rounds 1 -report "" -profiles $(CURDIR)/bin/profiles beside
	go -C bench run ./analytics -rows 1000000 -rounds 3 -report "" -profiles $(CURDIR)/bin/profiles
	go tool pprof -proto -output cmd/trireme/default.pgo bin/profiles/*.pb.gz

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

.PHONY: bin/trireme
bin/trireme: ## as the image's is built, so that the compiler does its work once for both
	CGO_ENABLED=0 go build -trimpath -o $@ ./cmd/trireme

bin/testsum: $(wildcard tools/testsum/*.go) tools/go.mod
	go -C tools build -o ../bin/testsum ./testsum

bin/staticcheck: tools/go.mod tools/go.sum
	go -C tools build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck

bin/protoc-gen-go: tools/go.mod tools/go.sum
	go -C tools build -o ../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go

bin/protoc-gen-go-grpc: tools/go.mod tools/go.sum
	go -C tools build -o ../bin/protoc-gen-go-grpc google.golang.org/grpc/cmd/protoc-gen-go-grpc

# A module of its own: it takes minutes to build, and its dependencies are many.
bin/buf: tools/buf/go.mod tools/buf/go.sum
	go -C tools/buf build -o ../../bin/buf github.com/bufbuild/buf/cmd/buf

# Kubernetes itself, and Helm: about 15 minutes of a processor, once.
bin/kubernetes/built: tools/kubernetes/go.mod tools/kubernetes/go.sum $(wildcard tools/kubernetes/*/*.go)
	version=$$(go -C tools/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes); mkdir -p bin/kubernetes; \
	CGO_ENABLED=0 go -C tools/kubernetes build -trimpath -o ../../bin/kubernetes/ -ldflags "-s -w \
		-X k8s.io/component-base/version.gitVersion=$$version -X k8s.io/component-base/version.gitMajor=1 \
		-X k8s.io/component-base/version.gitMinor=$$(cut -d. -f2 <<<$$version) -X k8s.io/component-base/version.gitTreeState=clean \
		-X k8s.io/client-go/pkg/version.gitVersion=$$version" ./kube ./coredns ./pause helm.sh/helm/v4/cmd/helm
	touch $@

# k6: about 5 minutes of a processor, once.
bin/k6: tools/k6/go.mod tools/k6/go.sum
	go -C tools/k6 build -o ../../bin/k6 go.k6.io/k6

bin/java/binlogdecode.jar: $(wildcard tools/binlogdecode/java/src/main/java/*.java) tools/binlogdecode/java/pom.xml
	mvn -q -B -f tools/binlogdecode/java/pom.xml package

bin/clients/python/installed: e2e/clients/python/requirements.txt
	python3 -m venv bin/clients/python
	bin/clients/python/bin/pip install -q -r $<
	touch $@

# Packages of the suites have no tests in them: they come from the sources.
bin/compat/installed: e2e/compat/requirements.txt
	rm -rf bin/compat && python3 -m venv bin/compat/python
	bin/compat/python/bin/pip install -q -r $<
	cd bin/compat && python/bin/pip download -q --no-deps --no-build-isolation --no-binary django,sqlalchemy django==5.2.19 sqlalchemy==2.0.58
	cd bin/compat && for s in django sqlalchemy; do mkdir $$s && tar xzf $$s-*.tar.gz -C $$s --strip-components=1; done
	cd bin/compat && DISABLE_SQLALCHEMY_CEXT=1 python/bin/pip install -q --no-build-isolation ./django ./sqlalchemy
	touch $@

bin/sdk/python/installed: sdk/python/requirements-dev.txt
	python3 -m venv bin/sdk/python
	bin/sdk/python/bin/pip install -q -r $<
	touch $@

bin/clients/node/installed: e2e/clients/node/package.json e2e/clients/node/package-lock.json
	mkdir -p bin/clients/node && cp $^ bin/clients/node
	cd bin/clients/node && npm ci --silent --no-audit --no-fund
	touch $@

bin/clients/java/clients.jar: $(wildcard e2e/clients/java/src/main/java/*.java) e2e/clients/java/pom.xml
	mvn -q -B -f e2e/clients/java/pom.xml package

bin/rust/debug/binlogdecode: $(wildcard tools/binlogdecode/rust/src/*.rs tools/binlogdecode/rust/Cargo.*)
	cargo build --quiet --locked --manifest-path tools/binlogdecode/rust/Cargo.toml --target-dir bin/rust
