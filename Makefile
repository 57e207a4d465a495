# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# The verbs of the project. Each one calls cmake, ctest or a tool; nothing is built here.
# Options: BUILD=<folder> (default build), JOBS=<n>, CONFIG=wide|narrow, BOARD=<name>.

BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# $(call need,<file>,<what>): a target whose content is not in the tree fails and says so.
need = test -e $(1) || { echo "make $@: $(2) is not in this tree: no $(1)" >&2; exit 1; }
cmake_build = cmake --build $(BUILD) -j $(JOBS)

.PHONY: help setup configure build demo test lint docs-check soak synth bench formal firmware docs \
  bitstream flash clean

help:
	@sed -n 's/^## /  make /p' $(MAKEFILE_LIST)

## setup       install what is missing (Debian packages; Python packages into .venv)
setup:
	@tools/setup

configure: setup
	@cmake -G Ninja -S . -B $(BUILD) --log-level=WARNING

build: configure
	@$(cmake_build)

## demo        stock ibv_rc_pingpong between two RTL NICs, latency in simulated time, a capture
demo:
	@$(call need,sim/nicsim,the simulator program)
	@$(MAKE) build
	@tools/demo $(BUILD)

## test        build everything, run all tests (proofs included, soak not)
test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error -LE '^soak$$'

## lint        file rules, Verilator, Yosys, clang-tidy
lint: configure
	@$(cmake_build) --target roci_generate
	@$(PYTHON) tools/lint.py --build $(BUILD) --jobs $(JOBS) files verilator yosys
	@$(cmake_build)
	@$(PYTHON) tools/lint.py --build $(BUILD) --jobs $(JOBS) tidy

## docs        regenerate docs/hardware-interface.md
docs: setup
	@$(PYTHON) tools/docs_check.py --write

## docs-check  generated pages are current, links lead somewhere
docs-check: setup
	@$(PYTHON) tools/docs_check.py

## soak        long random run with losses: MESSAGES=10000 SEED=1 CONFIG=wide|narrow ARGS="--pcap FILE"
soak: configure
	@$(cmake_build) --target roci_soak
	@$(BUILD)/roci-soak --messages $(or $(MESSAGES),10000) --seed $(or $(SEED),1) \
	  --config $(or $(CONFIG),wide) $(ARGS)

## synth       area and logic depth of both configurations (CONFIG=wide|narrow: one of them)
synth:
	@$(call need,rtl/roci_top.sv,the top of the chip)
	@$(MAKE) configure
	@$(cmake_build) --target roci_generate
	@$(call firmware_if_there)
	@$(PYTHON) tools/synth.py --build $(BUILD) --jobs $(JOBS) $(addprefix --config ,$(CONFIG))

## bench       figures of merit in simulated cycles, against their limits
bench:
	@$(call need,tests/bench/run,the benchmark)
	@$(MAKE) build
	@tests/bench/run $(BUILD)

## formal      proofs of small blocks, and planted faults that they must find
formal:
	@$(call need,tests/formal,the folder of the proofs)
	@$(MAKE) configure
	@$(cmake_build) --target roci_generate
	@$(PYTHON) tools/formal.py --build $(BUILD) --jobs $(JOBS)

## firmware    image of the RISC-V firmware
firmware:
	@$(call need,firmware/CMakeLists.txt,the firmware)
	@$(MAKE) configure
	@$(cmake_build) --target firmware

## bitstream   BOARD=<name>: bitstream of a board
bitstream:
	@test -n "$(BOARD)" || { echo "make bitstream: which board? BOARD=<name>" >&2; exit 2; }
	@$(call need,constraints/$(BOARD),the board $(BOARD))
	@$(call need,constraints/$(BOARD)/build,its build script)
	@$(MAKE) configure
	@constraints/$(BOARD)/build $(BUILD)

## flash       BOARD=<name>: write the bitstream into the board
flash:
	@test -n "$(BOARD)" || { echo "make flash: which board? BOARD=<name>" >&2; exit 2; }
	@$(call need,constraints/$(BOARD),the board $(BOARD))
	@$(call need,constraints/$(BOARD)/flash,its flash script)
	@constraints/$(BOARD)/flash $(BUILD)

## clean       remove what the build made (.venv stays)
clean:
	@rm -rf $(BUILD)

# Synthesis reads the firmware image into the RAM of the CPU.
firmware_if_there = if test -e firmware/CMakeLists.txt; then $(cmake_build) --target firmware; fi
