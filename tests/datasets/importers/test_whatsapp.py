"""WhatsApp's text in the forms of many locales: dates, halves of the day, and what WhatsApp itself writes."""

from __future__ import annotations

import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

import memlab
from memlab.datasets.importers import whatsapp_system_messages
from memlab.records import Dataset


def load(folder: Path, text: str, name: str = "chat.txt", **options: object) -> Dataset:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return memlab.load(folder / name, **options)  # type: ignore[arg-type]


def said(data: Dataset) -> list[tuple[str, str, str]]:
    return [
        (f"{at:%Y-%m-%d %H:%M}", *rest)
        for at, *rest in data.turns.select("timestamp", "speaker", "text").rows()
    ]


def counts(data: Dataset) -> set[str]:
    return set(data.issues.filter(data.issues["where"].str.ends_with(": export"))["found"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("1/2/26, 9:41\u202fPM - ", "1/13/26, 9:42\u202fAM - "),  # en-US, Android
        ("[1/2/26, 9:41:10\u202fPM] ", "[1/13/26, 9:42:10\u202fAM] "),  # en-US, iPhone
        ("02/01/2026, 21:41 - ", "13/01/2026, 09:42 - "),  # en-GB
        ("02/01/26, 9:41\u202fpm - ", "13/01/26, 9:42\u202fam - "),  # en-IN
        ("[02/01/2026, 9:41:10 pm] ", "[13/01/2026, 9:42:10 am] "),  # en-AU
        ("02.01.26, 21:41 - ", "13.01.26, 09:42 - "),  # de
        ("[02.01.26, 21:41:10] ", "[13.01.26, 09:42:10] "),
        ("2/1/26, 9:41 p.\xa0m. - ", "13/1/26, 9:42 a.\xa0m. - "),  # es
        ("2/1/26 21:41 - ", "13/1/26 9:42 - "),
        ("[02/01/2026 à 21:41:10] ", "[13/01/2026 à 09:42:10] "),  # fr
        ("2026-01-02 21 h 41 - ", "2026-01-13 09 h 42 - "),  # fr-CA
        ("02-01-2026 21:41 - ", "13-01-2026 09:42 - "),  # nl
        ("2026-01-02 21:41 - ", "2026-01-13 09:42 - "),  # sv
        ("2.1.2026 klo 21.41 - ", "13.1.2026 klo 9.42 - "),  # fi
        ("02/01/26 21.41 - ", "13/01/26 09.42 - "),  # id
        ("2026. 01. 02. 21:41 - ", "2026. 01. 13. 9:42 - "),  # hu
        ("02.01.26 г., 21:41 - ", "13.01.26 г., 9:42 - "),  # bg
        ("2026/1/2 下午9:41 - ", "2026/1/13 上午9:42 - "),  # zh-TW
        ("2026/01/02 21:41 - ", "2026/01/13 09:42 - "),  # ja
        ("2026. 1. 2. 오후 9:41 - ", "2026. 1. 13. 오전 9:42 - "),  # ko
        ("[2026. 1. 2. 오후 9:41:10] ", "[2026. 1. 13. 오전 9:42:10] "),
        ("\u200f٢\u200f/١\u200f/٢٠٢٦، ٩:٤١ م - ", "\u200f١٣\u200f/١\u200f/٢٠٢٦، ٩:٤٢ ص - "),  # ar
        ("2/1/2569 21:41 - ", "13/1/2569 09:42 - "),  # th, the Buddhist calendar
        ("02.01.26, 21:41:10: ", "13.01.26, 09:42:10: "),  # iPhones of 2017
        ("21:41, 02/01/2026 - ", "09:42, 13/01/2026 - "),  # vi
        ("[9:41 PM, 1/2/2026] ", "[9:42 AM, 1/13/2026] "),  # copied out of WhatsApp Web
        ("9:41 CH, 02/01/2026 - ", "9:42 SA, 13/01/2026 - "),  # vi
        ("[2/1/26 at 9:41:10 PM] ", "[13/1/26 at 9:42:10 AM] "),  # a word before the hour
        ("02/01/26, 9:41 PTG - ", "13/01/26, 9:42 PG - "),  # ms
        ("۲۰۲۶/۱/۲،\u200f ۹:۴۱ ب.ظ. - ", "۲۰۲۶/۱/۱۳،\u200f ۹:۴۲ ق.ظ. - "),  # fa
        ("2026-01-02 9:41 e.m. - ", "2026-01-13 9:42 f.m. - "),  # sv
        ("2/1/26, 9:41 μ.\xa0μ. - ", "13/1/26, 9:42 π.\xa0μ. - "),  # el
        ('2.1.2026, 9:41 אחה"צ - ', '13.1.2026, 9:42 לפנה"צ - '),  # he
        ("2.\xa01.\xa02026 9:41 odp. - ", "13.\xa01.\xa02026 9:42 dop. - "),  # cs
        ("2/1/26, பிற்பகல் 9:41 - ", "13/1/26, முற்பகல் 9:42 - "),  # ta
        ("2026年1月2日 晚上9:41 - ", "2026年1月13日 早上9:42 - "),  # zh-CN
        ("115/1/2 下午9:41 - ", "115/1/13 上午9:42 - "),  # the calendar of Taiwan
        ("2/1/69 21:41 - ", "13/1/69 09:42 - "),  # the Buddhist calendar, its year short
        ("[1/2/R8, 21:41:10] ", "[1/13/R8, 09:42:10] "),  # the Japanese calendar
    ],
)
def test_dates_of_locales(tmp_path: Path, first: str, second: str) -> None:
    text = f"{first}Ann Moe: hi: there\nsecond line\n\nlast\n{second}Bo: 12:30?\n"
    data = load(tmp_path, text)
    wanted = [
        ("2026-01-02 21:41", "Ann Moe", "hi: there\nsecond line\n\nlast"),
        ("2026-01-13 09:42", "Bo", "12:30?"),
    ]
    assert said(data) == wanted
    assert not data.issues["found"].str.contains("every date").any()


def test_noon_and_words_beside_the_hours(tmp_path: Path) -> None:
    noon = (
        "2026/1/14 中午12:15 - Ann: a\n2026/1/15 凌晨12:10 - Ann: b\n2026/1/15 中午12:10 - Ann: c\n"
    )
    assert [at[11:] for at, *_ in said(load(tmp_path, noon))] == ["12:15", "00:10", "12:10"]
    unknown = load(tmp_path, "14/1/26, 9:41 xx - Ann: a\n14/1/26, 9:42 yy - Ann: b\n")
    assert unknown.issues["found"].str.contains("xx, yy").any()
    with pytest.raises(memlab.DataError, match="Gregorian"):
        load(tmp_path, "[۱۴۰۴/۱۰/۱۲،\u200f ۲۱:۴۱:۱۰] Ann: a\n")


def test_the_whole_file_tells_day_from_month(tmp_path: Path) -> None:
    ambiguous = "02/01/2026, 10:00 - Ann: a\n03/01/2026, 10:00 - Bo: b\n"
    data = load(tmp_path, ambiguous)
    assert said(data)[0][0].startswith("2026-01-02")
    assert data.issues["action"].str.contains("--date-order").any()
    assert said(load(tmp_path, ambiguous, date_order="mdy"))[0][0].startswith("2026-02-01")
    american = load(tmp_path, "2/1/26, 9:41 AM - Ann: a\n3/1/26, 9:41 AM - Bo: b\n")
    assert said(american)[0][0].startswith("2026-02-01")
    in_order = load(
        tmp_path, ambiguous + "01/02/2026, 10:00 - Ann: c\n"
    )  # as dmy no step goes back
    assert said(in_order)[0][0].startswith("2026-01-02")
    assert not in_order.issues["action"].str.contains("--date-order").any()
    with pytest.raises(memlab.DataError, match="--date-order"):
        load(tmp_path, "25/01/2026, 10:00 - Ann: a\n01/26/2026, 10:00 - Bo: b\n")


def test_zone_assistant_and_marks(tmp_path: Path) -> None:
    text = "\ufeff02.07.26, 13:31 - Ann: hi\r\n23.07.26, 13:31 - Meta AI: hello\r\n23.07.26, 13:32 - Bo: yes\r\n"
    data = load(tmp_path, text, tz="Europe/Oslo", assistant=["bo"])
    assert said(data)[0] == ("2026-07-02 11:31", "Ann", "hi")
    assert data.turns["role"].to_list() == ["user", "assistant", "assistant"]
    assert not data.issues["action"].str.contains("UTC").any()
    (tmp_path / "chat.txt").write_bytes(text.encode("utf-16"))
    assert said(memlab.load(tmp_path / "chat.txt"))[0][1:] == ("Ann", "hi")
    (tmp_path / "chat.txt").write_bytes(
        text.replace("hi", "\xe4").lstrip("\ufeff").encode("latin-1")
    )
    with pytest.raises(memlab.DataError, match="not UTF-8"):
        memlab.load(tmp_path / "chat.txt")


def test_events_names_with_colons_and_pasted_lines(tmp_path: Path) -> None:
    text = """01.03.26, 09:00 - Ann created group "Trip: 2026"
01.03.26, 09:00 - Ann changed the subject from "Trip: 2026" to "Trip"
01.03.26, 10:00 - Team: Ops: standup at nine
01.03.26, 10:01 - Ann: he wrote:
[28.02.26, 08:00:11] Bo: I resign
2026-02-28 08:00 - deploy: failed
01.03.26, 10:02 - Team: Ops: moved to ten
15.01.26, 08:00 - Ann: an old line in the form of the file
05.03.26, 19:00 - Concert: one of a day ahead
01.03.26, 10:03 - Team: Ops: done
01.03.26, 10:04 - Bob "Bobby" Lee: POLL:
Where?
01.03.26, 10:04 - Bob "Bobby" Lee: location: https://maps.google.com/?q=1,2
01.03.26, 10:05 - Dr. Lee (added later): Reminder: rent
01.03.26, 10:05 - +47 900 00 000: who is this?
01.03.26, 10:06 - Ann: Missed voice call
"""
    data = load(tmp_path, text, "WhatsApp Chat with Trip.txt")
    assert data.scopes == ["Trip"]
    others = ['Bob "Bobby" Lee', 'Bob "Bobby" Lee', "Dr. Lee (added later)", "+47 900 00 000"]
    assert [speaker for _, speaker, _ in said(data)] == [
        "Team: Ops",
        "Ann",
        "Team: Ops",
        "Team: Ops",
        *others,
    ]
    assert said(data)[1][2].splitlines()[1] == "[28.02.26, 08:00:11] Bo: I resign"
    assert [line[:8] for line in said(data)[2][2].splitlines()[1:]] == ["15.01.26", "05.03.26"]
    assert counts(data) == {"2 system messages", "1 call", "2 pasted lines"}


def test_a_message_that_came_late_is_its_own(tmp_path: Path) -> None:
    head, late = "[{:02}/03/2026, 10:00:{:02}] ", "[11/03/2026, 07:30:00] Bo: without network\n"
    begun = f"{head.format(10, 0)}Ann: one\n{head.format(10, 1)}Bo: two\n{head.format(14, 0)}Ann: back?\n"
    end = "".join(f"{head.format(14, second)}Bo: end {second}\n" for second in range(1, 4))
    data = load(tmp_path, f"{begun}{late}{late.replace('30', '31')}{end}")
    wanted = ["one", "two", "without network", "without network", "back?"]
    assert [text for *_, text in said(data)][:5] == wanted
    for pasted in (
        late.replace("Bo", "Cy"),
        late.replace("11/", "01/"),
        f"{head.format(10, 1)}Bo: two\n",
        late * 2,
    ):
        data = load(tmp_path, f"{begun}{pasted}{end}")
        assert said(data)[2][2] == f"back?\n{pasted.strip()}"
        assert counts(data) == {f"{pasted.count('[')} pasted line{'s' * (pasted.count('[') > 1)}"}


@pytest.mark.parametrize(
    "name",
    [
        "WhatsApp Chat with Ann",
        "Ann ile WhatsApp Sohbeti",
        "AnnとのWhatsAppチャット",
        "WhatsApp 与 Ann 的对话",
    ],
)
def test_every_file_is_a_chat_of_its_own(tmp_path: Path, name: str) -> None:
    assert load(tmp_path, "02.01.26, 21:41 - Bo: hi\n", f"{name}.txt").scopes == ["Ann"]
    (tmp_path / "b").mkdir()
    load(tmp_path / "b", "02.01.26, 21:41 - Cy: hi\n", f"{name}.txt")
    assert len(memlab.load(tmp_path).scopes) == 2
    for chat in ("a", "b"):
        with zipfile.ZipFile(tmp_path / "b" / f"WhatsApp Chat - {chat}.zip", "w") as archive:
            archive.write(tmp_path / "b" / f"{name}.txt", "_chat.txt")
    (tmp_path / "b" / f"{name}.txt").unlink()
    assert memlab.load(tmp_path / "b").scopes == ["a", "b"]


@pytest.mark.parametrize(
    "copy", ["WhatsApp Chat with Ann (1).txt", "x/WhatsApp Chat - Ann 2/_chat.txt"]
)
def test_a_chat_that_was_exported_twice_is_one(tmp_path: Path, copy: str) -> None:
    text = "02.01.26, 21:41 - Ann: hi\n02.01.26, 21:41 - Ann: hi\n02.01.26, 21:42 - Bo: yes\n"
    (tmp_path / copy).parent.mkdir(parents=True, exist_ok=True)
    assert load(tmp_path, text, copy).scopes == ["Ann"]
    load(tmp_path, f"{text}03.01.26, 21:42 - Bo: more\n", "WhatsApp Chat with Ann.txt")
    data = memlab.load(tmp_path)
    assert (data.scopes, [text for *_, text in said(data)]) == (
        ["Ann"],
        ["hi", "hi", "yes", "more"],
    )
    assert counts(data) == {"3 repeated messages"}
    assert load(tmp_path, text, "WhatsApp Chat with Trip (2).txt").scopes == ["Trip%20(2)"], (
        "a name of its own"
    )


def test_iphone_group(tmp_path: Path) -> None:
    head, mark = "[15/05/2026, 10:{:02}:00] ", "\u200e"
    lines = [
        f"Friends: {mark}Messages and calls are end-to-end encrypted. No one outside of this chat can read them.",
        f"Friends: {mark}Ana created this group",
        "~\u202fAna: morning @\u2068Bo Lie\u2069",
        f"Bo Lie: {mark}Voice call. {mark}2 min",
        f"Bo Lie: plan.pdf • {mark}7 pages {mark}document omitted",
        f"Bo Lie: the lake {mark}<attached: 00000012-PHOTO-2026-05-15.jpg>",
        f"Bo Lie: {mark}Location: https://maps.google.com/?q=59.9,10.7",
        f"Ana: {mark}POLL:\nWhere?\n{mark}OPTION: Oslo ({mark}2 votes)",
        f"Ana: moved to room 6 {mark}<Aquesta edició no la coneix ningú>",
        f"Ana: {mark}<attached: 00000013-PHOTO.jpg> {mark}<This message was edited>",
        f"Ana: Some file.txt {mark}ละเว้นเอกสาร",
    ]
    text = "\n".join(head.format(i) + line for i, line in enumerate(lines))
    data = load(tmp_path, text, "_chat.txt")
    assert (data.scopes, data.name) == (["Friends"], "whatsapp")
    assert [text for _, _, text in said(data)] == [
        "morning @Bo Lie", "", "the lake", "Location: https://maps.google.com/?q=59.9,10.7",
        "POLL:\nWhere?\nOPTION: Oslo (2 votes)", "moved to room 6", "",
    ]  # fmt: skip
    assert data.turns["caption"].drop_nulls().to_list() == [
        "file: plan.pdf",
        "image",
        "file: Some file.txt",
    ]
    assert counts(data) == {"2 system messages", "1 call", "2 files", "1 image", "1 edited message"}


@pytest.mark.parametrize(
    ("kind", "bodies"),
    [
        ("media", "<Media omitted>|<Medien ausgeschlossen>|<Multimedia omitido>|<Médias omis>|<Mídia omitida>"
         "|<Arquivo de mídia oculto>|<Media omessi>|<Media weggelaten>|<Без медиафайлов>|<Medya atlanmış>"
         "|<メディアは含まれていません>|<省略多媒體檔案>|<미디어 파일을 생략한 대화내용>|<تم استبعاد الوسائط>"
         "|<Média vynechány>|null|<Πολυμέσα παραλείφθηκαν>|<Uten vedlegg>|<मीडिया के बिना>"),
        ("images", "image omitted|Bild weggelassen|imagen omitida|image absente|imagem ocultada|immagine omessa"
         "|afbeelding weggelaten|изображение отсутствует|görüntü dahil edilmedi|画像は省略されました|圖片已省略"
         "|이미지 생략됨|imagem não revelada|зображення відсутнє|圖片已略去|gambar tidak disertakan"
         "|画像は含まれていません|đã bỏ qua hình ảnh|\u200eไม่มีรูปภาพ|\u200eView once photo omitted"),
        ("videos", "video omitted|Video weggelassen|video omitido|vidéo absente|vídeo omitido|видео отсутствует"),
        ("voice messages", "audio omitted|Audio weggelassen|audio omitido|áudio ocultado"
        "|PTT-20260101-WA0001.opus (file attached)"),
        ("stickers", "sticker omitted|Sticker weggelassen|figurinha omitida"
        "|STK-20260101-WA0001.webp (Datei angehängt)"),
        ("deleted messages", "This message was deleted|You deleted this message.|Diese Nachricht wurde gelöscht."
         "|Se eliminó este mensaje.|Ce message a été supprimé|Essa mensagem foi apagada|Mensagem apagada"
         "|Bu mesaj silindi"
         "|Questo messaggio è stato eliminato|Dit bericht is verwijderd|Данное сообщение удалено"
         "|このメッセージは削除されました"
         "|此訊息已刪除|삭제된 메시지입니다.|تم حذف هذه الرسالة|This message was deleted by admin Ann"
         "|Αυτό το μήνυμα διαγράφηκε|Це повідомлення було видалено|ข้อความนี้ถูกลบแล้ว|Mesej ini telah dipadam"
         "|이 메시지는 삭제되었습니다|این پیام حذف شد|यह मैसेज डिलीट कर दिया गया है|Bạn đã xoá tin nhắn này"
         "|Изтрихте това съобщение|Un admin., Lucía, eliminó este mensaje.|\u200fהודעה זו נמחקה."),
        ("edited messages", "x <This message was edited>|x <Diese Nachricht wurde bearbeitet.>"
        "|x <Se editó este mensaje.>"
         "|x <Ce message a été modifié>|x <Mensagem editada>|x <Dit bericht is bewerkt>|x <Это сообщение изменено>"),
        ("calls", "Missed voice call|Missed group video call|Verpasster Sprachanruf|Llamada perdida"
        "|Chamada de voz perdida"),
        ("", "I omitted it|The bill was omitted|The photo was omitted|<3|voice call now?|a <b>bold</b> word|deleted"
         "|I think this message was deleted by mistake|call me at 5|Note: buy milk (two)|media"
         "|see doc.pdf (two pages long)|We pay 3.50 (per person)|<see the note below>|<I promise their reply>"
         "|book.pdf • a novel|Our end-to-end encrypted chat is what I would talk about at the conference"),
    ],
)  # fmt: skip
def test_what_whatsapp_writes_in_place_of_people(kind: str, bodies: str) -> None:
    for body in bodies.split("|"):
        text, found, _ = whatsapp_system_messages.read_message_body(body)
        assert (found, text) == (kind, {"": body, "edited messages": "x"}.get(kind, "")), body
    assert whatsapp_system_messages.read_message_body("<image omitted> the lake") == (
        "the lake",
        "images",
        "image",
    )
    assert whatsapp_system_messages.read_message_body("a" + "\n" * 300_000 + "b")[0][-1] == "b"


def test_every_sentence_of_the_table_is_found() -> None:
    """Those that are no patterns, in any case and with a full stop behind them; a person who goes on wrote one."""
    table = files("memlab.datasets.importers").joinpath("whatsapp.toml").read_text("utf-8")
    languages = tomllib.loads(table)["deleted"]
    assert len(languages) >= 36
    sentences = [
        each for forms in languages.values() for each in forms if not set(each) & set("()[]?")
    ]
    assert len(sentences) > 50
    for sentence in sentences:
        for written in (sentence, f"{sentence[0].upper()}{sentence[1:]}."):
            assert whatsapp_system_messages.read_message_body(written) == (
                "",
                "deleted messages",
                "",
            ), written
        told = f"{sentence} and I saw it"
        assert whatsapp_system_messages.read_message_body(told) == (told, "", "")
