"""What pyproject.toml cannot say: the sample, which lies in ``data``, is put into the built
package."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SAMPLE = Path(__file__).parent / "data" / "sample"


class BuildWithSample(build_py):
    """Copies ``data/sample`` to where ``memlab.files.shipped_data`` looks for it in a package."""

    def run(self) -> None:
        super().run()
        # An editable install reads the checkout.
        if not self.editable_mode:
            target = Path(self.build_lib) / "memlab" / "data" / "sample"
            shutil.copytree(SAMPLE, target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithSample})
