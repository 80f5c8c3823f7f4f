# Two commands matter: `make demo` shows what vmtune does, `make test` proves it.
# Both install what is missing: Debian packages (as root), then Python's from the hashed lock.

PYTHON ?= /usr/bin/python3
VENV := .venv
# Here services start hundreds of times: they are not compiled anew each time.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WEB_READY := web/node_modules/.ready
WEB_BUILT := vmtune/webui/index.html
WEB_SOURCES := $(shell find web/src web/public -type f) web/index.html web/vite.config.ts
# As a module, so that the pages' generator is found: docs/generator.
# With --quiet it would not fail on warnings.
MKDOCS := said=$$(NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict 2>&1) || { echo "$$said"; exit 1; }
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix web --silent

.DEFAULT_GOAL := help
.PHONY: help demo check test lint docs lint-web format screenshots bench dataset dataset-publish otava fault fuzz lab-releases test-transports test-releases test-pythons test-databases test-ansible test-nova test-clients test-container web wheel client-wheel deb test-deb packages packages-for-tests lock openapi qemu-patched clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: packages $(READY) $(WEB_BUILT)  ## migrate a VM between two libvirt hosts, tuned and not (KEEP=1 stays up)
	@$(BIN)/vmtune demo $(if $(KEEP),--keep)

# Where libvirt's headers are missing, libvirt-python cannot be compiled: the environment is made
# without it, and no test of this target needs it.
check: $(if $(wildcard $(READY)),$(READY),$(VENV)/.quick)  ## formatting, types, import rules and unit tests: no root, no packages
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports
	@$(BIN)/pytest -q -n $$(nproc) --dist worksteal -m "not integration" --hypothesis-profile quick tests/unit $(PYTEST_ARGS)
	@$(BIN)/mypy

test: packages-for-tests $(READY) $(WEB_BUILT) lint  ## every check and every test
	@$(NPM) test
	@BIN=$(BIN) sh tests/both.sh $(PYTEST_ARGS)

test-long: packages-for-tests $(READY)  ## the tests that `make test` leaves out: more faults, the oldest libvirt (as root; takes minutes)
	@$(BIN)/pytest -n 2 --dist loadfile -m long tests/e2e tests/contract tests/unit $(PYTEST_ARGS)

lint: $(READY) lint-web  ## ruff, strict mypy, import rules, OpenAPI and docs, and the web UI's checks
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --diff .; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m vmtune.api.openapi --check
	@$(BIN)/python packaging/client/generate.py --check
	@MYPYPATH=packaging/client $(BIN)/mypy -p vmtune_client
	@$(MKDOCS)

docs: $(READY)  ## build the documentation into build/docs, reference pages and all
	@$(MKDOCS)
	@echo build/docs/index.html

lint-web: $(WEB_READY)
	@$(NPM) run check
	@$(NPM) run types:check

format: $(READY) $(WEB_READY)  ## let ruff and biome mend what they can
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .
	@$(NPM) run format

web: $(WEB_BUILT)  ## build the web UI into the package

$(WEB_BUILT): $(WEB_SOURCES) $(WEB_READY)
	@$(NPM) run build

# What an earlier build left in build/ would be packed again.
wheel: $(READY) $(WEB_BUILT)  ## build dist/vmtune-VERSION-py3-none-any.whl, web UI and all
	@rm -rf build/lib build/bdist.*
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist .
	@rm -rf build/lib build/bdist.*
	@ls dist/vmtune-*.whl

client-wheel: $(READY)  ## build dist/vmtune_client-VERSION-py3-none-any.whl, the client for programs
	@rm -rf build/client && mkdir -p build && cp -RL packaging/client build/client
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist build/client
	@rm -rf build/client
	@ls dist/vmtune_client-*.whl

deb: wheel  ## build a Debian package; RELEASE=bookworm, trixie or forky, else this machine's (as root)
	@sh packaging/deb/build.sh $(RELEASE)

test-ansible: packages-for-tests $(READY) deb  ## the Ansible collection on real hosts, its role in an empty Debian, ansible-test (as root; takes minutes)
	@$(BIN)/pytest tests/ansible $(PYTEST_ARGS)

test-container: packages-for-tests $(READY) deb  ## build the container image, run it with libvirt's sockets (as root; takes minutes)
	@$(BIN)/pytest tests/container $(PYTEST_ARGS)

test-nova: packages-for-tests $(READY)  ## migrations by the libvirt drivers of two OpenStack Novas (as root; takes minutes)
	@$(BIN)/pytest -s tests/nova $(PYTEST_ARGS)

test-deb: deb  ## install, run, upgrade and purge it in empty Debian folders; RELEASE=forky, VMTUNE_TEST_SUITE=sid: of that suite (as root; takes minutes)
	@$(BIN)/pytest -s tests/packages $(PYTEST_ARGS)

# Node comes with the environment; nobody who installs vmtune needs it.
$(WEB_READY): web/package-lock.json $(READY)
	@$(NPM) ci
	@touch $@

screenshots: packages-for-tests $(READY) $(WEB_BUILT)  ## take the README's screenshots anew, into docs/images; ONLY=overview,migrate takes some
	@SCREENSHOTS=docs/images ONLY=$(ONLY) $(BIN)/pytest tests/web/test_screenshots.py

bench: packages-for-tests $(READY) $(WEB_BUILT)  ## run the benchmarks; NAME=apply_latency runs one, NAME=soak MINUTES=60 the soak
	@$(BIN)/python -m tests.perf $(NAME)

dataset: packages-for-tests $(READY)  ## migrations of drawn workloads into RESULTS=build/dataset, COUNT=2000 of them; goes on where it was stopped
	@$(BIN)/python -m tests.perf.forecasts.dataset $(or $(RESULTS),build/dataset) $(or $(COUNT),2000)

dataset-publish: $(READY)  ## put what make dataset collected into dataset/, with its datasheet; RESULTS=build/dataset
	@$(BIN)/python -m tests.perf.forecasts.dataset_file publish $(or $(RESULTS),build/dataset)

otava: $(READY)  ## an environment with Apache Otava in .cache/otava, for stats_sim and a test that reads its CSV
	@$(BIN)/python -m tests.perf.verdicts.otava

fault: packages-for-tests $(READY)  ## faults at random moments of migrations (hours); TRIES=20 FAULT="--fault link" KIND=direct-disks FILE=build/faults.jsonl
	@mkdir -p build && $(BIN)/python -m tests.fault --tries $(or $(TRIES),20) $(if $(KIND),--kind $(KIND)) $(if $(FILE),--append $(FILE)) $(FAULT)

test-transports: packages-for-tests $(READY)  ## SSH, TLS, TCP with SASL, libssh and polkit between lab machines (as root; takes minutes)
	@sh tests/releases/modular.sh || echo "test-transports: without virtqemud and virtproxyd"
	@$(BIN)/pytest tests/transports $(PYTEST_ARGS)

lab-releases: packages-for-tests  ## roots of Debian releases for lab machines, RELEASES="bookworm trixie sid" (as root; needs debootstrap; minutes)
	@for release in $(or $(RELEASES),bookworm trixie sid); do sh tests/releases/root.sh $$release || exit 1; done

test-releases: packages-for-tests $(READY) lab-releases  ## migrations between lab machines of Debian releases, and drivers and service without libvirt over the QEMU of SUITE=sid (as root; needs debootstrap; minutes)
	@RECORD_RELEASES=1 $(BIN)/pytest tests/releases $(PYTEST_ARGS)
	@sh tests/releases/unpack.sh $(or $(SUITE),sid)
	@PATH=$(CURDIR)/.cache/qemu-$(or $(SUITE),sid):$$PATH $(BIN)/pytest -n 3 --dist loadfile -k "not libvirt" tests/contract tests/e2e/test_direct.py tests/e2e/disks/test_copied_disks_direct.py tests/e2e/test_packs.py tests/e2e/test_postcopy.py $(PYTEST_ARGS)

test-pythons: packages-for-tests $(READY)  ## the unit tests by each Python from 3.11 to 3.14; PYTHONS="3.12 3.14": by these (as root; takes minutes)
	@sh tests/releases/pythons.sh $(PYTEST_ARGS)

test-databases: packages-for-tests $(READY)  ## tests of what is stored by PostgreSQL 15 to 18; POSTGRES="16 18": by these (as root; takes minutes)
	@sh tests/releases/databases.sh $(PYTEST_ARGS)

test-clients: packages-for-tests $(READY) $(WEB_READY)  ## clients that stock generators make (Python, TypeScript, Go) build and migrate (as root; takes minutes)
	@$(BIN)/pytest tests/clients $(PYTEST_ARGS)

fuzz: packages $(READY)  ## fuzz the HTTP API for MINUTES=20
	@$(BIN)/python -m tests.fuzz.api $(MINUTES)

packages:
	@sh vmtune/lab/bootstrap.sh

packages-for-tests:
	@sh vmtune/lab/bootstrap.sh --tests

# uv comes from the same lock as everything else, its hash checked by pip.
$(VENV)/uv.lock: requirements.lock
	@$(PYTHON) -m venv $(VENV)
	@awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements.lock > $@.new
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $@.new
	@mv $@.new $@

$(READY): $(VENV)/uv.lock pyproject.toml
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

# The environment of `make check` alone.
$(VENV)/.quick: $(VENV)/uv.lock pyproject.toml
	@cp requirements.lock $(VENV)/quick.lock
	@pkg-config --exists libvirt 2>/dev/null || { \
	  echo "make check: libvirt's headers (libvirt-dev) are not installed: this environment has no libvirt-python"; \
	  awk '/^[a-z]/ {skip = /^libvirt-python==/} !skip' requirements.lock > $(VENV)/quick.lock; }
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(VENV)/quick.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

lock: $(READY)  ## write requirements.lock anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev \
	  --no-emit-index-url --no-header --output-file requirements.lock pyproject.toml

openapi: $(READY) $(WEB_READY)  ## write api/openapi.json anew, and from it the types of the web UI and of vmtune-client
	@$(BIN)/python -m vmtune.api.openapi
	@$(NPM) run types
	@$(BIN)/python packaging/client/generate.py

# Whoever runs this builds QEMU from Debian's sources; nothing else needs it. Outside of the checkout,
# so that `make clean` leaves it: rm -r the folder instead.
qemu-patched:  ## build the QEMU of the pack qemu-patched, into ~/.cache/vmtune/qemu-patched or PATCHED_QEMU=FOLDER; UNPATCHED=1: without the patch, to compare with
	@PATCHED_QEMU="$(PATCHED_QEMU)" UNPATCHED="$(UNPATCHED)" sh vmtune/packs/qemu-10/build.sh

clean:  ## remove what was built, and the environment
	@rm -rf $(VENV) .cache build dist web/node_modules vmtune/webui *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
