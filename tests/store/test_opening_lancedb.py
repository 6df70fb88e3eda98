"""What LanceDB leaves for later when a store is opened works as it does elsewhere."""

from __future__ import annotations

import subprocess
import sys

OPENED = """
import sys
from memlab.store import MemoryStore
MemoryStore.open(sys.argv[1])
import pydantic
from lance_namespace import CreateNamespaceRequest
print("overrides" in sys.modules, pydantic.BaseModel.model_config)
print(CreateNamespaceRequest(id=["a"]).id)
try:
    CreateNamespaceRequest(id=1)
except pydantic.ValidationError as error:
    print(error.error_count())
class Eager(pydantic.BaseModel):
    n: int
print(Eager.__pydantic_complete__)
import lancedb
print(lancedb.connect(sys.argv[1]).table_names() != [])
"""


def test_models_that_are_built_later_validate(tmp_path):
    command = [sys.executable, "-c", OPENED, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["False {}", "['a']", "1", "True", "True"]
