"""Settings: which source wins, where each value came from, and what cannot be used."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import memlab
from memlab.config import FILE, Settings, settings
from memlab.errors import DataError

SERVICE = '[llm.services.local]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n'


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEMLAB_")]:
        monkeypatch.delenv(name)


def in_force(
    folder: Path, text: str | None = None, **flags: Any
) -> tuple[Settings, dict[str, str]]:
    if text is not None:
        (folder / FILE).write_text(text, encoding="utf-8")
    return settings(flags, directory=folder)


def refused(folder: Path, text: str | None = None, **flags: Any) -> str:
    with pytest.raises(DataError) as caught:
        in_force(folder, text, **flags)
    return str(caught.value)


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_force(tmp_path)[1] == dict.fromkeys(Settings.model_fields, "default")
    text, seeds = "seed = 1\n", []
    for variable, flag in (("", None), ("2", None), ("2", 0), ("0", None)):
        if variable:
            monkeypatch.setenv("MEMLAB_SEED", variable)
        found, origins = in_force(tmp_path, text, seed=flag)
        seeds.append((found.seed, origins.pop("seed")))
        assert set(origins.values()) == {"default"}
    assert seeds == [(1, "memlab.toml"), (2, "MEMLAB_SEED"), (0, "flag"), (0, "MEMLAB_SEED")]


def test_every_setting_can_come_from_the_file(tmp_path: Path) -> None:
    values = {
        "store": "s3://bucket/store", "encoder": "hashing:64", "header": ["time", "scope"], "language": "de",
        "pipelines": ["bm25", "hybrid(k=20) | mmr"], "plugins": ["my_stages"], "on_error": "quarantine",
        "token_encoder": "minilm", "gap_minutes": 45.0, "seed": 5, "figures": "f", "results": "r",
    }  # fmt: skip
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()) + SERVICE
    text += '[index]\nservice = "local"\nfacts = false\n[recall]\ngraph = 0.5\n[confidence]\nreinforcement_step = 0.5\n'
    text += '[embed.mine]\npath = "models/e5"\ndimensions = 64\n'
    found, origins = in_force(tmp_path, text)
    assert json.loads(found.model_dump_json(include=set(values))) == values
    assert (found.index.service, found.index.facts, found.index.min_turns) == ("local", False, 4)
    assert (found.recall.graph, found.confidence) == (0.5, {"reinforcement_step": 0.5})
    assert found.llm.services["local"].model == "m"
    assert (found.embed["mine"].path, found.embed["mine"].dimensions) == ("models/e5", 64)
    assert set(origins.values()) == {"memlab.toml"}


def test_variables_hold_lists_as_json_and_services_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLAB_PIPELINES", '["bm25", "dense"]')
    monkeypatch.setenv("MEMLAB_LLM__SERVICES__LOCAL__TIMEOUT", "5")
    monkeypatch.setenv("MEMLAB_LLM__SERVICES__OTHER", '{"base_url": "http://x/v1", "model": "n"}')
    found, origins = in_force(tmp_path, SERVICE)
    assert found.pipelines == ("bm25", "dense")
    local, other = found.llm.services["local"], found.llm.services["other"]
    assert (local.base_url, local.model, local.timeout) == ("http://127.0.0.1:1/v1", "m", 5.0), (
        "the file's table stays"
    )
    assert other.model == "n"
    assert origins["pipelines"] == "MEMLAB_PIPELINES"
    assert origins["llm"] == "MEMLAB_LLM"


@pytest.mark.parametrize(
    ("text", "variable", "said"),
    [
        ("seed = \n", "", "memlab.toml is not valid TOML"),
        ("sede = 1\n", "", "setting 'sede' (from memlab.toml)"),
        ("seed = -1\n", "", "greater than or equal to 0, found -1"),
        (SERVICE + "modle = 1\n", "", "a table of [llm.services] has base_url, model, api_key_env"),
        (SERVICE + "timeout = 0\n", "", "setting 'llm.services.local.timeout'"),
        # A key is not repeated.
        ("[llm.services.local]\nmodel = ['sk-secret']", "", "setting 'llm.services.local"),
        (
            "",
            "MEMLAB_SEDE=1",
            "variable MEMLAB_SEDE names no setting; there are MEMLAB_CONFIDENCE, MEMLAB_EMBED, MEMLAB_ENCODER",
        ),
        ("", "MEMLAB_PIPELINES=bm25", "write lists and tables as JSON"),
        ("", "MEMLAB_LLM__SERVICE__X__MODEL=m", "setting 'llm.service' (from MEMLAB_LLM)"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, variable: str, said: str
) -> None:
    if variable:
        monkeypatch.setenv(*variable.split("="))
    message = refused(tmp_path, text)
    assert said in message
    assert "sk-secret" not in message


def test_a_wrong_flag_and_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert "setting 'on_error' (from flag)" in refused(tmp_path, on_error="skip")
    (tmp_path / FILE).mkdir()
    assert "cannot be read: Is a directory" in refused(tmp_path)


def test_info_prints_every_setting_with_its_origin_and_no_secret(
    memlab_cli: Any, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_text(
        'figures = "pictures"\n[llm.services.hosted]\nmodel = "m"\napi_key_env = "HOSTED_KEY"\n'
        'base_url = "https://ann:sk-inside@host.invalid/v1"\n'
    )
    store = ("--store", "az://account:sk-store@place")
    done = memlab_cli("info", *store, cwd=tmp_path, HOSTED_KEY="sk-outside", MEMLAB_SEED="3")
    assert done.code == 0, done.err
    printed = {line.split()[0]: line.split()[-1] for line in done.out.splitlines() if line.strip()}
    origins = {
        "store": "flag",
        "encoder": "default",
        "seed": "MEMLAB_SEED",
        "figures": "memlab.toml",
    }
    assert origins.items() <= printed.items()
    assert set(Settings.model_fields) - {"llm"} <= printed.keys()
    assert "service hosted: m at https://…@host.invalid/v1 memlab.toml" in done.out
    assert "sk-" not in done.out + done.err


def test_python_obeys_the_settings_as_the_command_line_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = memlab.sample(turns=60)
    (tmp_path / "memlab.toml").write_text('encoder = "hashing:32"\nheader = ["time"]\n')
    monkeypatch.chdir(tmp_path)
    provenance = memlab.run("dense", data).reports[0].provenance
    assert provenance["header"] == ["time"]
    assert ", 32-d," in provenance["encoder"]
