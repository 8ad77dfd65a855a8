# Everything a contributor runs. Works from a fresh clone with Python 3.11+ and make alone.
PYTHON ?=
BIN := .venv/bin
READY := .venv/.ready
CORE := .venv/.core
# Tests that also run without the core; see docs/explanation/native-core.md.
PURE_TESTS := tests/protocol tests/store tests/net tests/client tests/broker tests/proxy

.PHONY: help setup demo test test-pure fuzz interop check format bench bench-java clean
.DEFAULT_GOAL := help

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) $(CORE) ## make .venv with everything needed (the others call it)

$(READY): pyproject.toml constraints.txt tools/setup
	@PYTHON="$(PYTHON)" tools/setup
	@touch $@

# Not made where there is no toolchain; then one line says so each time.
$(CORE): $(READY) tools/build_core $(wildcard native/*.toml native/Cargo.lock native/src/*.rs)
	@tools/build_core

demo: $(READY) $(CORE) ## see the product do its main job
	@$(BIN)/pocketmq demo

test: $(READY) $(CORE) ## run all tests
	@$(BIN)/python -m pytest -n 4 --dist loadgroup $(ARGS)

test-pure: $(READY) ## run the tests of what the native core replaces, in pure Python
	@POCKETMQ_PURE=1 $(BIN)/python -m pytest -n 4 --dist loadgroup $(or $(ARGS),$(PURE_TESTS))

fuzz: $(READY) $(CORE) ## send random and damaged bytes through the native core for minutes
	@native/fuzz $(ARGS)

interop: $(READY) $(CORE) ## run both ways against Apache RocketMQ 5.5.0 and 4.9.7 (needs a JDK and Maven)
	@$(BIN)/python tools/interop.py $(ARGS)

check: $(READY) ## format, lint, types, layers, dead code, plain words, Rust
	@echo "format" && $(BIN)/ruff format --check -q .
	@echo "lint"   && $(BIN)/ruff check -q .
	@echo "types"  && $(BIN)/mypy
	@echo "layers" && $(BIN)/lint-imports --no-cache >.venv/layers.log || { cat .venv/layers.log; exit 1; }
	@echo "dead code" && $(BIN)/python tools/dead_code.py
	@echo "words"  && $(BIN)/python tools/plain_words.py
	@echo "rust"   && tools/check_core

format: $(READY) ## format, and fix what can be fixed automatically
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

bench: $(READY) $(CORE) ## run the benchmarks (quiet machine, please)
	@$(BIN)/python -m benchmarks $(ARGS)

bench-java: $(READY) $(CORE) ## measure side by side with Apache RocketMQ (needs a JDK and Maven)
	@jars="$${POCKETMQ_JAVA:-$$($(BIN)/python tools/interop_jars.py 5.5.0)}" && \
	POCKETMQ_JAVA="$$jars" $(BIN)/python -m benchmarks.java $(ARGS)

clean: ## remove generated files
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build
