# SPDX-License-Identifier: BSD-2-Clause-Patent
#
# The verbs of the project. Each one calls cmake, ctest or a tool; nothing is built here.
# Options: BUILD=<folder> (default build), JOBS=<n>, CONFIG=wide|narrow, BOARD=<name>.

BUILD ?= build
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# $(call need,<file>,<what>): a target whose content is not there yet fails and says so.
need = test -e $(1) || { echo "make $@: $(2) is not in this tree ($(1))" >&2; exit 1; }

.PHONY: help setup configure build demo test lint docs-check soak synth bench formal firmware docs \
  bitstream flash clean

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## setup       install what is missing (Debian packages, .venv)
setup:
	@tools/setup

configure: setup
	@cmake -G Ninja -S . -B $(BUILD) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

build: configure
	@cmake --build $(BUILD) -j $(JOBS)

## demo        stock ibv_rc_pingpong between two RTL NICs
demo: build
	@$(call need,sim/nicsim,the simulator program)
	@$(call need,tools/demo,the demo)
	@tools/demo $(BUILD)

## test        build everything, run all tests
test: build
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

## lint        Verilator, Yosys, clang-tidy and file rules
lint: build
	@$(PYTHON) tools/lint.py --build $(BUILD) --jobs $(JOBS)

## docs        regenerate docs/hardware-interface.md
docs: setup
	@$(PYTHON) tools/docs_check.py --write

## docs-check  generated pages are current, links lead somewhere
docs-check: setup
	@$(PYTHON) tools/docs_check.py

## clean       remove what the build made (not .venv)
clean:
	@rm -rf $(BUILD)
