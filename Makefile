# One command for each thing there is to do; `make help` lists them. All the work is cargo's.

CARGO ?= cargo
# `make run PROFILE=release` serves faster, but the first build takes twice as long: 7 minutes against 3 on two cores.
# One who has just cloned waits for the build, and two players with curl do not notice the rest.
PROFILE ?= dev
# More arguments for the tests: `make test ARGS='--test embedded killed'`.
ARGS ?= --lib --bins --tests
# How many examples `make schemathesis` tries of each operation.
EXAMPLES ?= 30

TESTDB := $(CARGO) run --quiet --locked --bin testdb --

.PHONY: help setup run test check fmt-check clippy doc sqlx-check goldens laws soak faults pgbouncer clients openapi lint-openapi schemathesis sqlx dist bench bench-load
.DEFAULT_GOAL := help

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: ## check for Rust, a linker and PostgreSQL; install what the system's package manager has
	@sh scripts/setup.sh

run: ## serve; without DATABASE_URL on a private PostgreSQL in ./data
	@sh scripts/setup.sh $(if $(DATABASE_URL),--without-postgres)
	$(CARGO) run --locked --profile $(PROFILE)

test: setup ## run the tests on a PostgreSQL of their own
	$(TESTDB) $(CARGO) test --locked $(ARGS)

# The tests come last, so that the last thing seen is their result.
check: setup fmt-check sqlx-check doc ## all that a change has to pass; CI runs exactly this
	$(CARGO) test --locked --doc
	$(TESTDB) $(CARGO) test --locked --lib --bins --tests

fmt-check:
	$(CARGO) fmt --check

# Of itself for whoever has no database at hand; `sqlx-check` runs it too.
clippy:
	$(CARGO) clippy --locked --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --document-private-items --lib

sqlx-check:
	sh scripts/sqlx.sh --check

goldens: setup openapi ## rewrite the files that tests compare with; review the diff like code
	TAVOLA_GOLDENS=write INSTA_UPDATE=always $(TESTDB) $(CARGO) test --locked $(ARGS)

laws: ## play 100,000 games of each ruleset and check that no law breaks; takes half an hour
	TAVOLA_LAW_GAMES=100000 TAVOLA_LAW_SELDOM=10 $(CARGO) test --locked --release --test contract no_random -- --nocapture

.PHONY: fuzz
# Which targets are fuzzed, and for how many seconds each.
FUZZ ?= moves records names cursors replay snapshots
SECONDS ?= 60
# What is learnt goes to the first folder, what was known is read from the second. Sanitizers would need a nightly toolchain, and
# have nothing to find where `unsafe` is forbidden.
fuzz: ## fuzz each target for SECONDS (60); FUZZ='cursors names' picks some; needs cargo-fuzz
	@for target in $(FUZZ); do \
		mkdir -p fuzz/target/corpus/$$target && \
		$(CARGO) fuzz run --sanitizer none $$target fuzz/target/corpus/$$target fuzz/corpus/$$target -- \
			-max_total_time=$(SECONDS) -max_len=16384 -timeout=20 || exit 1; \
	done

soak: setup ## two servers, killed and cut at random, play 200 games, and everything is checked; takes half an hour
	$(CARGO) build --locked --bin tavola
	$(TESTDB) python3 tests/soak/soak.py $(SOAK)

# What is named by TAVOLA_BIN is tested as it is; otherwise what has just been built, whatever older builds there are.
faults: setup ## kill, cut and choke server and database while games are played; needs root for a disk that is full; five to ten minutes
	$(if $(TAVOLA_BIN),,$(CARGO) build --locked --profile $(PROFILE) --bin tavola)
	TAVOLA_BIN=$(or $(TAVOLA_BIN),target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/tavola) python3 tests/faults/faults.py $(FAULTS)

clients: setup ## generate clients in three languages and play every ruleset with each; CLIENTS='python' picks some
	sh clients/run.sh $(CLIENTS)

openapi: setup ## rewrite openapi/openapi.json from the code
	@mkdir -p openapi
	$(CARGO) run --quiet --locked -- openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json

lint-openapi: ## check openapi/openapi.json with Redocly and Spectral; needs Node.js
	cd openapi/lint && npm ci --no-audit --no-fund --ignore-scripts --silent && npm run --silent lint

schemathesis: setup ## have Schemathesis try every operation of a server, EXAMPLES of each; needs Python 3.10 or newer
	$(CARGO) build --locked --bin tavola
	python3 -m venv target/schemathesis
	target/schemathesis/bin/pip install --quiet --requirement tests/schemathesis/requirements.txt
	target/schemathesis/bin/python tests/schemathesis/run.py $(EXAMPLES)

sqlx: setup ## rewrite .sqlx, what the compiler knows about the queries, after a change of query or migration
	sh scripts/sqlx.sh

dist: setup ## build the server as images have it, target/dist/tavola; takes a quarter of an hour
	$(CARGO) build --locked --profile dist --bin tavola

bench: setup ## measure the engine: decisions, views, snapshots of every ruleset; takes a minute after the build
	$(CARGO) bench --locked --bench engine

bench-load: setup ## play over HTTP against a server, with pgbench beside it; takes eight minutes after the build; LOAD='--server target/dist/tavola'
	$(CARGO) bench --locked --bench load -- $(LOAD)

pgbouncer: setup ## servers behind a real PgBouncer: work in session mode, refuse the others; needs the program pgbouncer
	$(CARGO) build --locked --bin tavola
	$(TESTDB) python3 tests/pgbouncer/run.py
