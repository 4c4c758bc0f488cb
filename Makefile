# Thin: every target does its own set-up and calls one program. `make help` lists them.
JOBS ?= $(shell nproc)
ARGS ?=
SECONDS_EACH ?= 300
.DEFAULT_GOAL := help
.PHONY: help serve build test test-slow e2e fuzz lint lint-all bench clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the release build: build/release/server/hexad
	@deploy/bootstrap build
	@deploy/build release hexad

serve: build ## install, build, fetch a small model, serve it on 127.0.0.1:8000 (ARGS="--help")
	@exec build/release/server/hexad serve $(ARGS)

test: ## every unit test under the address and undefined-behaviour sanitizers
	@deploy/bootstrap test
	@deploy/build dev
	@ctest --test-dir build/dev --output-on-failure -j $(JOBS)

test-slow: ## the long property tests, in release
	@deploy/bootstrap test
	@deploy/build release-tests
	@ctest --test-dir build/release-tests --output-on-failure -j $(JOBS)

e2e: ## the real daemon under the official OpenAI clients for Python and Node
	@deploy/bootstrap test
	@deploy/build release hexad
	@tests/e2e/run build/release/server/hexad

fuzz: ## each fuzzer for SECONDS_EACH seconds
	@deploy/bootstrap test lint
	@deploy/build fuzz
	@tests/fuzz/run build/fuzz $(SECONDS_EACH)

lint: ## format, shell, YAML and static checks of what changed
	@deploy/bootstrap test lint
	@tests/tidy/lint changed

lint-all: ## the same of everything
	@deploy/bootstrap test lint
	@tests/tidy/lint all

bench: build ## the load generator against a running server (ARGS="--help")
	@build/release/server/hexad bench $(ARGS)

clean: ## remove every build folder
	rm -rf build
