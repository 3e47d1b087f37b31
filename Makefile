# Everything happens in .venv and build/; nothing is done again while its inputs have not changed.

VENV := .venv
JOBS := $(shell nproc 2>/dev/null || echo 2)
# The first of these that is 3.11 or newer; PYTHON=... names another.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
    $(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

FUZZ_RUNS ?= 10000000

PIP     := pip -q --disable-pip-version-check install
# No build isolation: the same cmake in the same folder compiles only what changed.
INSTALL := $(PIP) --no-build-isolation -Cbuild-dir=build/core
PACKAGE := $(shell find app core_ext profiles -type f ! -name '*.so' ! -path '*/__pycache__/*' 2>/dev/null)
NATIVE   = $(shell find core_ext tests -name '*.cpp' -o -name '*.h' -o -name '*.inl')

.DEFAULT_GOAL := help
.PHONY: help run test pictures check check-full check-architectures native bench vectors lint asan tsan fuzz wheel clean

help:  ## this list
	@echo "strata-tui. Needs Python 3.11 or newer, a C++20 compiler and make."
	@sed -n 's/^\([a-z-]*\):.*##\(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: $(VENV)/installed  ## install into .venv and open the console; ARGS="model.gguf --stages 3"
	@strata-tui $(ARGS)

test: $(VENV)/test-tools native  ## the native tests, then pytest; ARGS="-k trace"
	python -m pytest -q $(ARGS)

pictures: $(VENV)/test-tools  ## the pictures of docs/screens.md and of the tests anew: look at what has changed
	@PYTHONPATH=tests python -m tests.tui.screens

check: $(VENV)/installed  ## the text is the same whatever the switches: 64 arms; ARGS="model.gguf"
	@strata-tui check $(ARGS)

check-full: $(VENV)/installed  ## the same with up to 400 arms, all triples of switches: minutes
	@strata-tui check --full $(ARGS)

check-architectures: $(VENV)/test-tools  ## check --full on a small model of each architecture; ARGS="--quick qwen3"
	@PYTHONPATH=tests:. python tests/proofs/architectures.py $(ARGS)

native: $(VENV)/installed  ## the native tests alone
	@cmake -DSTRATA_TESTS=ON build/core >/dev/null
	@cmake --build build/core --target strata_tests
	build/core/strata_tests

bench: $(VENV)/installed  ## how fast the kernels are on one thread; ARGS="avx2 Q4_K"
	@cmake -DSTRATA_TESTS=ON build/core >/dev/null
	@cmake --build build/core --target strata_bench
	build/core/strata_bench $(ARGS)

vectors: $(VENV)/test-tools  ## tokenizers against llama.cpp's vectors, which pip fetches once (77 MB)
	@PYTHONPATH=. python tests/proofs/token_vectors.py build/vectors

lint: $(VENV)/dev-tools  ## ruff, mypy, clang-format, codespell
	ruff check .
	mypy
	clang-format --dry-run --Werror $(NATIVE)
	codespell

asan: SANITIZERS := address,alignment
asan: $(VENV)/build-tools  ## the native tests under the address sanitizer; misaligned reads too
	@$(call sanitized,address)

tsan: $(VENV)/build-tools  ## the native tests under the thread sanitizer
	@$(call sanitized,thread)

fuzz: $(VENV)/test-tools  ## hostile model files, under sanitizers; 5,000 random keys; FUZZ_RUNS=10000000 (of the reader)
	@cmake -S core_ext -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTRATA_PYTHON=OFF -DSTRATA_FUZZ=ON \
	    "-DSTRATA_SANITIZE=address,undefined" >/dev/null
	@cmake --build build/fuzz --target strata_fuzz
	@cd build/fuzz && ./strata_fuzz reader $(FUZZ_RUNS) && ./strata_fuzz set $$(($(FUZZ_RUNS) / 10)) && \
	    ./strata_fuzz model $$(($(FUZZ_RUNS) / 100))
	@PYTHONPATH=. python tests/fuzz/build_tokenizer.py $$(($(FUZZ_RUNS) / 10))
	@STRATA_FUZZ_KEYS=5000 python -m pytest -q tests/tui/test_fuzz.py

wheel: $(VENV)/build-tools  ## a wheel in dist/
	pip -q wheel . --no-deps -w dist

clean:  ## remove .venv, build and dist
	rm -rf $(VENV) build dist

define sanitized
cmake -S core_ext -B build/$(1) -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTRATA_PYTHON=OFF -DSTRATA_TESTS=ON \
    -DSTRATA_SANITIZE=$(or $(SANITIZERS),$(1)) >/dev/null && cmake --build build/$(1) && build/$(1)/strata_tests
endef

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; PYTHON=/path/to/python names one"; exit 2; }
	@command -v $${CXX:-c++} >/dev/null || { echo "a C++20 compiler is needed; there is no $${CXX:-c++}"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) can't make a venv (Debian: python3-venv)"; exit 2; }

$(VENV)/build-tools: | $(VENV)/bin/python
	@echo "fetching the build tools"
	@$(PIP) "scikit-build-core>=0.10" "pybind11>=3.0" cmake ninja
	@touch $@

$(VENV)/installed: $(VENV)/build-tools pyproject.toml README.md LICENSE $(PACKAGE)
	@echo "building strata-tui and installing it into $(VENV): minutes where the engine must be compiled"
	@$(INSTALL) .
	@touch $@

$(VENV)/test-tools: pyproject.toml | $(VENV)/installed
	@$(INSTALL) '.[test]'
	@touch $@

$(VENV)/dev-tools: pyproject.toml | $(VENV)/installed
	@$(INSTALL) '.[dev]'
	@touch $@
