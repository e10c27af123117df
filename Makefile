# `make help` says what there is. Every target makes the environment that it needs first, unless it is up to date.

PYTHON ?= python3
DIST_ARGS ?=
LAB_ARGS ?=
LESSONS ?= 01 02
PEERS_ARGS ?=
PYTEST_ARGS ?=
RELEASES ?=

VENV_PYTHON = .venv/bin/python
# HOOKVIZ_LANGUAGE=zh opens the Chinese lessons.
EDITION = $(if $(filter zh%,$(HOOKVIZ_LANGUAGE)),/zh)
AGAIN = $(MAKE) --no-print-directory
QUICK = -q --numprocesses logical --dist worksteal -m "not slow" hookviz README.md tests/unit
NOX = $(VENV_PYTHON) -m nox -s
# The sessions of noxfile.py for the chosen releases of PyTorch, or for all.
sessions = $(or $(foreach release,$(RELEASES),'$(1)($(release))'),$(1))
# In the order of pyproject.toml, the tests in the browser come first, which take longest.
WHOLE = -q --numprocesses auto --dist loadfile --no-loadscope-reorder
# What Python has compiled stays for the next run, whatever this shell says: otherwise each process compiles all anew.
export PYTHONDONTWRITEBYTECODE =
# JupyterLab refuses to run as root, as people do in containers, without this.
ROOT_ARGS = $(shell test "$$(id -u)" = 0 && echo --allow-root)

.DEFAULT_GOAL := help
# An environment whose making failed is made anew the next time.
.DELETE_ON_ERROR:
.PHONY: help lab check test lint style format types imports javascript bundle lessons site slides handouts images bench effects proofs \
    atlas matrix peers dist classic clean python test-javascript test-python

help:
	@echo "make lab      open the lessons in JupyterLab, as copies in my_lessons/  (LAB_ARGS='--no-browser --port=8899')"
	@echo "make check    format, lint, types and the quick tests"
	@echo "make test     run every test                  (PYTEST_ARGS='-k trace')"
	@echo "make lint     check style, types and imports"
	@echo "make bundle   bundle the player's JavaScript and CSS, which needs Node"
	@echo "make lessons  make the students' lessons from those with solutions, and the Chinese edition of all texts"
	@echo "make site     make the course as a static site in build/site"
	@echo "make slides   make slides of lessons in build/slides  (LESSONS='01 02')"
	@echo "make handouts make the map of the hooks and worksheets of lessons in build/handouts  (LESSONS='01 02')"
	@echo "make images   draw the pictures in images/ anew"
	@echo "make bench    measure what recording costs"
	@echo "make effects  train the sick network of lesson 09 with ten seeds, and write the table of what its faults do"
	@echo "make proofs   compare thousands of generated programs, networks, samples, faults and damaged files"
	@echo "make atlas    run the programs of the atlas of hooks with each release of PyTorch  (RELEASES='2.6 newest')"
	@echo "make matrix   try releases of PyTorch, one after the other  (RELEASES='2.6 newest')"
	@echo "make peers    compare hookviz with other tools  (PEERS_ARGS='resnet hookviz torchviz')"
	@echo "make dist     build the wheel and the sdist, and try both in empty environments  (DIST_ARGS='-m \"not slow\"')"
	@echo "make classic  test the players in the classic notebook with ipywidgets 7.7.1, the version on Colab"
	@echo "make clean    remove .venv, caches and built packages, and leave my_lessons/ as it is"
	@echo "Another Python: make lab PYTHON=python3.12. In Chinese: HOOKVIZ_LANGUAGE=zh make lab (slides, handouts)"

lab: .venv/lab
	@$(VENV_PYTHON) tools/my_lessons.py notebooks$(EDITION) my_lessons$(EDITION)
	@echo "JupyterLab starts; its address appears below. Ctrl-C ends it. You work in my_lessons$(EDITION)/, which is yours."
	@$(VENV_PYTHON) -m jupyterlab $(ROOT_ARGS) --LabApp.app_settings_dir=tools \
	    --LabApp.default_url=/lab/tree/my_lessons$(EDITION)/01_the_graph.ipynb $(LAB_ARGS)

# Style and types are checked while the tests run; what that found comes after them, so that the two do not mix.
check: .venv/check
	@mkdir -p build
	@$(AGAIN) --keep-going lint >build/lint.log 2>&1 & lint=$$!; trap 'kill $$lint' INT TERM; \
	OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest $(QUICK); failed=$$?; \
	wait $$lint || failed=1; cat build/lint.log; exit $$failed

# With --keep-going, a failure of one does not hide the other's.
test: .venv/dev
	@$(AGAIN) --keep-going test-javascript test-python

test-javascript: .venv/check
	@$(VENV_PYTHON) tools/javascript.py test

# With more threads, torch in one worker would keep a core busy while it waits for those in another.
test-python: .venv/dev
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest $(or $(PYTEST_ARGS),$(WHOLE))

# With --keep-going, what one of these finds does not hide what the others find.
lint: style format types imports javascript

style: .venv/check
	@$(VENV_PYTHON) -m ruff check

format: .venv/check
	@$(VENV_PYTHON) -m ruff format --check

# What tools/ imports is there once `make test` has installed it; without that, the package alone is checked.
types: .venv/check
	@$(VENV_PYTHON) -m mypy $(if $(wildcard .venv/dev),,hookviz)

imports: .venv/check
	@.venv/bin/lint-imports --no-cache --no-logo

javascript: .venv/check
	@$(VENV_PYTHON) tools/javascript.py lint fresh

bundle: .venv/dev
	@$(VENV_PYTHON) -m tools.payload_types
	@$(VENV_PYTHON) tools/javascript.py bundle

lessons: .venv/dev
	@$(VENV_PYTHON) -m tools.lessons
	@$(VENV_PYTHON) -m tools.translation

site: .venv/dev
	@$(VENV_PYTHON) -m tools.website

slides: .venv/dev
	@$(VENV_PYTHON) -m tools.slides $(LESSONS)

handouts: .venv/dev
	@$(VENV_PYTHON) -m tools.handouts $(LESSONS)

images: .venv/dev
	@$(VENV_PYTHON) images/make.py

bench: .venv/dev
	@$(VENV_PYTHON) -m benchmarks

# The same tests as in make test, with more cases; CONTRIBUTING.md says what each variable counts.
proofs: .venv/dev
	@HOOKVIZ_PROGRAMS=3000 HOOKVIZ_NETWORKS=1000 HOOKVIZ_SAMPLES=1000 HOOKVIZ_FAULTS=1000 HOOKVIZ_INTERRUPTS=600 \
	    HOOKVIZ_MUTANTS=20000 OMP_NUM_THREADS=1 $(VENV_PYTHON) -m pytest -q --numprocesses auto --dist loadfile -o faulthandler_timeout=0 \
	    tests/proof tests/unit/test_interrupts.py

effects: .venv/dev
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m hookviz.course.effects

atlas: .venv/dev
	@rm -rf build/atlas
	@$(NOX) $(call sessions,atlas)
	@$(VENV_PYTHON) -m atlas build/atlas/*.json
	@$(VENV_PYTHON) -m pytest -q atlas/test_atlas.py

matrix: .venv/dev
	@$(NOX) $(call sessions,matrix)

peers: .venv/dev
	@$(NOX) peers -- $(PEERS_ARGS)

dist: .venv/dev
	@$(NOX) build dist -- $(DIST_ARGS)

classic: .venv/dev
	@$(NOX) classic

clean:
	rm -rf .venv node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -path ./my_lessons -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

python:
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || { \
	    echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not one: install it, or name the one you have: make PYTHON=python3.11" >&2; exit 1; }

# Only a change of Python itself makes it anew; what is installed in it has a mark of its own below.
.venv/bin/python: | python
	"$(PYTHON)" -m venv .venv

# Each larger set holds the smaller ones.
.venv/lab .venv/check .venv/dev: .venv/%: pyproject.toml constraints.txt .venv/bin/python
	$(VENV_PYTHON) -m pip install --disable-pip-version-check -c constraints.txt -e ".[$*]"
	@touch .venv/lab $(if $(filter check dev,$*),.venv/check) $(if $(filter dev,$*),.venv/dev)
