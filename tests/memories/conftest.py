"""Two short conversations with questions."""

from __future__ import annotations

import pytest
from talk import dialogue

from memlab.records import Dataset

SAID = """
== ann 2024-05-01
Ann: My sister Ida adopted a grey cat named Muri.
Ann: We walked along the harbour and had coffee by the lighthouse.
Ann: The invoice for the dentist was ninety euros.
== ann 2024-05-02
Ann: I moved from Bergen to Oslo in the first week of March.
Ann: Muri has learned to open the kitchen cupboard.
Ann: The dentist moved my appointment to Thursday afternoon.
? single: What is Ida's cat called? = Muri < 1.1 2.2
? single: When is the dentist? = Thursday < 1.3 2.3
== bo 2024-05-01
Bo: I started to learn the cello with a teacher called Hana.
Bo: My brother Sam bakes bread every Sunday morning.
Bo: Hana says that I should practise scales every day.
== bo 2024-05-02
Bo: The train to Lyon was three hours late.
Bo: Sam opened a bakery next to the old station.
Bo: I sold my bicycle to a colleague for forty euros.
? single: Who teaches the cello? = Hana < 1.1
? single: Where is Sam's bakery? = next to the old station < 1.2 2.2
"""


@pytest.fixture(scope="session")
def data() -> Dataset:
    return dialogue(SAID)
