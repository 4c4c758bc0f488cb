# Thin: every target does its own set-up and calls one program. `make help` lists them.
JOBS ?= $(shell nproc)
ARGS ?=
SECONDS_EACH ?= 300
.DEFAULT_GOAL := help
.PHONY: help serve build test test-slow tsan e2e fuzz lint lint-all bench bench-cpu bench-serve bench-step clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the release build: build/release/server/hexad
	@deploy/bootstrap build
	@deploy/build release hexad

serve: build ## install, build, fetch a small model, serve it on 127.0.0.1:8000 (ARGS="--help")
	@exec build/release/server/hexad serve $(ARGS)

test: ## every unit test under the address and undefined-behaviour sanitizers
	@deploy/bootstrap test
	@deploy/build dev
	@ctest --test-dir build/dev --output-on-failure -j $(JOBS)

test-slow: ## the long property tests and the numerics, in release
	@deploy/bootstrap test
	@deploy/build release-tests release_tests
	@ctest --test-dir build/release-tests --output-on-failure -L release -j $(JOBS)

tsan: ## the tests that run several threads, under the thread sanitizer
	@deploy/bootstrap test
	@deploy/build tsan thread_tests
	@ctest --test-dir build/tsan --output-on-failure -L threads -j $(JOBS)

e2e: ## the real daemon under the official OpenAI clients for Python and Node
	@deploy/bootstrap test
	@deploy/build release-tests hexad
	@tests/e2e/run build/release-tests/server/hexad

fuzz: ## each fuzzer for SECONDS_EACH seconds
	@deploy/bootstrap test lint
	@deploy/build fuzz fuzzers
	@tests/fuzz/run build/fuzz $(SECONDS_EACH)

lint: ## format, shell, YAML and static checks of what changed
	@deploy/bootstrap test lint
	@tests/tidy/lint changed

lint-all: ## the same of everything
	@deploy/bootstrap test lint
	@tests/tidy/lint all

bench: build ## load a running server; ARGS="engine MODEL.gguf" or "kernels" for this machine
	@build/release/server/hexad bench $(ARGS)

bench-serve: build ## hexad against llama-server (PEER=folder with it MODELS="a.gguf ..." PAIRS=7)
	@python3 tests/bench/peer_serve.py --peer "$(PEER)" --pairs $(or $(PAIRS),7) $(ARGS) $(MODELS)

bench-cpu: build ## the CPU engine against llama.cpp (PEER=folder of its programs MODELS=folder PAIRS=7)
	@python3 tests/bench/peer_cpu.py --peer "$(PEER)" \
		--folder "$(or $(MODELS),build/bench/models)" --make --pairs $(or $(PAIRS),7) $(ARGS)

bench-step: build ## what planning a step costs (ARGS="--help")
	@mkdir -p build/bench
	@build/release/server/hexad bench step --json build/bench/step.json $(ARGS)

clean: ## remove every build folder
	rm -rf build
