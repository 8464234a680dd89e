# Every job of the project by one name. On a fresh Debian 12, as root, with git and make there, each target first sets up
# what it needs (tools/setup) and does nothing twice; stamps are in build/setup.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench bench-setup lint fuzz check-all docs clean

STAMPS := build/setup
PACKAGES := $(STAMPS)/packages.stamp
VENV := $(STAMPS)/venv.stamp
MODELS := $(STAMPS)/models.stamp
PYTHON := .venv/bin/python

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(PACKAGES) $(VENV) $(MODELS) ## install Debian packages, .venv and model files

$(PACKAGES): tools/debian-packages.txt
	tools/setup packages
	@mkdir -p $(@D) && touch $@

$(VENV): requirements.txt | $(PACKAGES)
	tools/setup venv
	@mkdir -p $(@D) && touch $@

$(MODELS): tools/models tools/models.sha256 tools/write_bert_onnx.py | $(VENV)
	tools/setup models
	@mkdir -p $(@D) && touch $@

build: $(PACKAGES) ## build build/release/bin/rlx and the tests
	cmake --preset release
	cmake --build --preset release

demo: build setup ## embed eight sentences and print how similar they are
	$(PYTHON) examples/similarity.py --model models/minilm --sentences examples/sentences.txt

test: build setup ## run every test of the release build
	ctest --test-dir build/release --output-on-failure --parallel 2

lint: $(PACKAGES) $(VENV) ## check format, layers, scripts, and clang-tidy on the files of tools/tidy-files.txt
	tools/lint

fuzz: $(PACKAGES) ## run the fuzzer of each parser for 30 seconds
	tools/check_all fuzz

check-all: setup ## what CI leaves out: clang, asan+ubsan, tsan, clang-tidy on every file, fuzzers
	tools/check_all

bench-setup: setup ## install the peers that benchmarks measure against
	tools/setup bench-packages
	tools/setup bench-venv

bench: bench-setup ## build and run the benchmarks
	tools/bench

docs: build setup ## make docs/operators.md and check the links of every Markdown page
	build/release/bin/operator_table >build/operators.md
	cp build/operators.md docs/operators.md
	$(PYTHON) tools/check_docs.py

clean: ## remove what was built; .venv and models/ stay
	rm -rf $(filter-out $(STAMPS),$(wildcard build/*))
