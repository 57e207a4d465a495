# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# The verbs of the project. Each one calls cmake, ctest or a tool; nothing is built here.
# Options: BUILD=<folder> (default build), JOBS=<n>, CONFIG=wide|narrow (conformance, soak, synth, fit).

BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

cmake_build = cmake --build $(BUILD) -j $(JOBS)

.PHONY: help setup configure build demo test lint docs-check conformance soak synth fit bench formal
.PHONY: firmware docs clean

help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)
	@echo "  options: BUILD=<folder> (default build), JOBS=<n> (default: all cores)"

## setup       install what is missing (Debian packages; Python packages into .venv)
setup:
	@tools/setup

## configure   the build folder, without building
configure: setup
	@cmake -G Ninja -S . -B $(BUILD) --log-level=WARNING

build: configure
	@$(cmake_build)

## demo        stock ibv_rc_pingpong between two RTL NICs, latency in simulated time, a capture
demo: configure
	@$(cmake_build) --target nicsim roci_preload
	@tools/demo $(BUILD)

## test        build everything, run all tests (proofs and a short soak included)
test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

## lint        file rules, Verilator, Yosys, clang-tidy
lint: configure
	@$(cmake_build) --target roci_generate
	@$(PYTHON) tools/lint.py --build $(BUILD) --jobs $(JOBS) files verilator yosys
	@$(cmake_build)
	@$(PYTHON) tools/lint.py --build $(BUILD) --jobs $(JOBS) tidy

## docs        regenerate docs/hardware-interface.md and rtl/README.md
docs: setup
	@$(PYTHON) tools/docs_check.py --write

## docs-check  generated pages are current, links and citations lead somewhere, pages match the code
docs-check: setup
	@$(PYTHON) tools/docs_check.py

## conformance scenarios of wire.md 4: a table, build/conformance.json, captures of failures; ARGS=17: one
conformance: configure
	@$(cmake_build) --target roci_conformance
	@rm -rf $(BUILD)/conformance
	@$(BUILD)/roci-conformance --config $(or $(CONFIG),wide) --seed $(or $(SEED),1) \
	  --json $(BUILD)/conformance.json --captures $(BUILD)/conformance $(ARGS)

## soak        long random run with losses: MESSAGES=10000 SEED=1 CONFIG=wide|narrow RATES=drop=1%,dup=1%
soak: configure
	@$(cmake_build) --target roci_soak
	@$(BUILD)/roci-soak --messages $(or $(MESSAGES),10000) --seed $(or $(SEED),1) \
	  --config $(or $(CONFIG),wide) $(addprefix --rates ,$(RATES)) $(ARGS)

## synth       area and logic depth of both configurations (CONFIG=wide|narrow: one of them)
synth: configure
	@$(cmake_build) --target roci_generate firmware
	@$(PYTHON) tools/synth.py --build $(BUILD) --jobs $(JOBS) $(addprefix --config ,$(CONFIG))

## fit         place and route of narrow on an ECP5-85F: clock rate and what limits it (an hour or more)
fit: configure
	@$(cmake_build) --target roci_generate firmware
	@$(PYTHON) tools/fit.py --build $(BUILD) --jobs $(JOBS) --config $(or $(CONFIG),narrow) $(ARGS)

## bench       figures of merit in simulated cycles, against their limits
bench: build
	@tests/bench/run $(BUILD)

## formal      proofs of small blocks, and planted faults that they must find
formal: configure
	@$(cmake_build) --target roci_generate
	@$(PYTHON) tools/formal.py --build $(BUILD) --jobs $(JOBS)

## firmware    image of the RISC-V firmware
firmware: configure
	@$(cmake_build) --target firmware

## clean       remove what the build made (.venv stays)
clean:
	@rm -rf $(BUILD)
