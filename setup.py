"""What pyproject.toml cannot say: the sample, which lies in ``data``, and the notebooks are put
into the built package."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SAMPLE = Path(__file__).parent / "data" / "sample"
NOTEBOOKS = Path(__file__).parent / "notebooks"


class BuildWithSample(build_py):
    """Copies ``data/sample`` and ``notebooks`` to where ``memlab.atomic_files`` looks for them in a
    package."""

    def run(self) -> None:
        super().run()
        # An editable install reads the checkout.
        if not self.editable_mode:
            target = Path(self.build_lib) / "memlab" / "data" / "sample"
            shutil.copytree(SAMPLE, target, dirs_exist_ok=True)
            self._copy_notebooks(Path(self.build_lib) / "memlab" / "data" / "notebooks")

    def _copy_notebooks(self, target: Path) -> None:
        """Copy the notebooks without their pairs and what an editor left beside them."""
        target.mkdir(parents=True, exist_ok=True)
        for notebook in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
            shutil.copy(notebook, target / notebook.name)


setup(cmdclass={"build_py": BuildWithSample})
