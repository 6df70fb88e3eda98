"""What WhatsApp writes into a chat in place of what people said, in the languages of its users.

The words are those of exports in public test files (chatcarve, whatstk, chat-miner, whats_json).
"""

from __future__ import annotations

import re

DIGITS = {start + i: str(i) for start in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for i in range(10)}
"""Arabic, Persian, Devanagari, Bengali and Thai digits to those of ASCII."""
_PM = r"p\.?\s?m|下午|晚上|午後|오후|م|ب\.ظ|ч\.пл|μ\.μ|ös|ch\b|nachm|nm\.|du|ip\.|אחה״צ|หลังเที่ยง|अपराह्न"
_AM = r"a\.?\s?m|上午|凌晨|早上|清晨|午前|오전|ص|ق\.ظ|π\.μ|öö|sa\b|vorm|fm\.|de\b|ap\.|לפנה״צ|ก่อนเที่ยง|पूर्वाह्न|中午"


def day_period(words: str) -> str:
    """Give the half of the day that stands beside a time: ``am``, ``pm`` or nothing.

    >>> from memlab.datasets.importers.whatsapp_words import day_period
    >>> day_period("p.\\xa0m."), day_period("上午"), day_period("à")
    ('pm', 'am', '')
    """
    said = words.lower().strip()
    if not said or said in ("à", "klo", "kl.", "г.", "ч.", "в", "um", "at", "г., ч.", "г.,  ч."):
        return ""
    return "pm" if re.match(rf"(?:{_PM})", said) else "am" if re.match(rf"(?:{_AM})", said) else ""


TITLE = re.compile(
    r"(?i)^.*?whatsapp[ _-]*(?:chat|chatverlauf|чат|conversation)?[ _-]*"
    r"(?:(?:with|mit|con|com o|com|avec|met|med|z|ze|ile|с контактом|с|s uživatelem|dengan)[ _])?"
)
ENCRYPTED = re.compile(
    r"(?i)end-to-end|ende-zu-ende|extremo a extremo|bout en bout|ponta a ponta|crittografat|сквозн|uçtan uca"
    r"|暗号化|端到端"
    r"|端對端|종단간|종단 간|مشفرة|zabezpečen|szyfrowan|krypter|מוצפנ|mã hóa đầu cuối|เข้ารหัส|एन्क्रिप्ट|päästä päähän"
)
EVENT = re.compile(
    r"(?i)\b(?:created group|created this group|created the group|changed (?:the|this|their|to|his|her)|security code"
    r"|added|removed|left|joined using|joined from|was added|pinned a message|end-to-end|turned (?:on|off) disappearing"
    r"|(?:reset|requested) (?:this|to)|started a call|deleted this group|is a contact|now an admin"
    r"|hat (?:die |den |das |dich |diese )|hast (?:die|den|das|diese)|haben die|wurde (?:hinzugefügt|entfernt)"
    r"|sicherheitsnummer|ist (?:der gruppe|über|jetzt)"
    r"|creó (?:el|este) grupo|cambió (?:el|la|este|los|su)|añadió a|agregó a|eliminó a|salió del|se unió"
    r"|criou (?:o|este) grupo|mudou (?:o|a|para|os)|alterou|adicionou|removeu|saiu|entrou usando"
    r"|a créé|a changé|a modifié|a ajouté|a retiré|a quitté|a rejoint|avez (?:créé|changé|modifié|ajouté|retiré)"
    r"|ha (?:creato|cambiato|modificato|aggiunto|rimosso|abbandonato)|è entrat[oa]"
    r"|heeft (?:de|deze|het|dit)|hebt (?:de|deze)|is toegevoegd|zmienił[a]?|utworzył[a]?|dodał[a]?|usunął|opuścił[a]?"
    r"|(?:создал|создала|создал\(-?а\)|создал\(а\)|изменил|изменила|изменил\(-?а\)|изменил\(а\)|добавил|добавила|удалил"
    r"|удалила|покинул|покинула|вышел|вышла)|grubu|gruptan|kişisini ekledi|skapade gruppen|ändrade|lade till|lämnade"
    r"|opprettet gruppen|oppretta|endret|la til|forlot)[ ”\"„«“»(.]"
    r"|[“”\"„«].*|がグループ|を追加|が退出|님이|群組|群组|创建了|建立了|加入了"
)
CALL = re.compile(
    r"(?i)(?:missed|silenced|voice|video|group)[ \w]*call|verpasster? \w*anruf|(?:sprach|video)anruf|llamada"
    r"|videollamada"
    r"|(?:chamada|ligação)|appel (?:vocal|vidéo|manqué)|(?:video)?chiamata|gemiste? |пропущенный|(?:аудио|видео)звонок"
    r"|cevapsız|不在着信|音声通話|ビデオ通話|未接|语音通话|語音通話|부재중|مكالمة|nieodebrane|zmeškan|missat|tapt "
)
_MISSED = re.compile(
    r"(?i)(?:missed|silenced) (?:group )?(?:voice|video) call(?: at .{4,12})?|verpasster (?:sprach"
    r"|video)anruf(?: um .{4,12})?"
    r"|(?:video)?llamada (?:de voz )?perdida(?: a las? .{4,12})?|chamada de (?:voz|vídeo) perdida.{0,16}"
    r"|ligação de (?:voz|vídeo) perdida"
    r"|appel (?:vocal|vidéo) manqué.{0,12}|(?:video)?chiamata (?:vocale )?persa.{0,14}|gemiste (?:spraak"
    r"|video)oproep.{0,14}"
    r"|пропущенный (?:аудио|видео)?звонок.{0,10}|cevapsız .{4,14} arama.{0,10}|(?:音声"
    r"|ビデオ)?通話?(?:の)?不在着信|未接.{2,6}"
    r"|부재중 .{2,6}통화"
)
_DELETED = re.compile(
    r"(?i)(?:this message was deleted(?: by admin.*)?|you deleted this message(?: as admin)?|message deleted"
    r"|diese nachricht wurde (?:von .*)?gelöscht|du hast diese nachricht (?:als admin )?gelöscht"
    r"|(?:se eliminó|eliminaste) este mensaje|este mensaje fue eliminado|mensaje eliminado"
    r"|(?:essa|esta) mensagem foi (?:apagada|eliminada)|mensagem apagada|você apagou (?:esta|essa) mensagem"
    r"|apagou esta mensagem"
    r"|eliminou esta mensagem|ce message a été supprimé|vous avez supprimé ce message|message supprimé"
    r"|questo messaggio è stato eliminato|hai eliminato questo messaggio"
    r"|dit bericht is verwijderd|(?:je|u) hebt dit bericht verwijderd"
    r"|(?:это |данное )?сообщение (?:было )?удалено|вы удалили (?:это|данное) сообщение"
    r"|bu mesaj silindi|bu mesajı sildiniz|ta wiadomość została usunięta|usunięto tę wiadomość|usunąłeś tę wiadomość"
    r"|tato zpráva byla (?:smazána|odstraněna)|(?:smazali|odstranili) jste tuto zprávu"
    r"|det här meddelandet (?:raderades|togs bort)"
    r"|du (?:raderade|tog bort) det här meddelandet|denne meldingen ble slettet|du slettet denne meldingen"
    r"|denne besked blev slettet|du slettede denne besked|tämä viesti poistettiin|poistit tämän viestin"
    r"|ezt az üzenetet törölték|acest mesaj a fost șters|pesan ini (?:telah )?dihapus|anda menghapus pesan ini"
    r"|このメッセージは削除されました|このメッセージを削除しました|メッセージの送信を取り消しました|此訊息已刪除"
    r"|此消息已删除|此条消息已删除|已刪除此訊息|您已刪除此訊息"
    r"|你删除了此条消息|您删除了这条消息|삭제된 메시지입니다|메시지를 삭제했습니다|삭제한 메시지입니다"
    r"|تم حذف هذه الرسالة|لقد حذفت هذه الرسالة"
    r"|ההודעה הזו נמחקה|הודעה זו נמחקה|מחקת הודעה זו|यह मैसेज मिटाया गया|यह संदेश हटा दिया गया था"
    r"|tin nhắn này đã bị xóa)[.。]?"
)
_EDITED = re.compile(
    r"(?i)[\s\u200e\u200f]*<[\u200e\u200f]*(?:this message was edited|(?:diese )?nachricht (?:wurde )?bearbeitet"
    r"|se editó este mensaje|este mensaje fue editado|mensaje editado|(?:esta )?mensagem (?:foi )?editada"
    r"|ce message a été modifié|message modifié|(?:questo )?messaggio (?:è stato )?modificato|dit bericht is bewerkt"
    r"|(?:это |данное )?сообщение (?:было )?изменено|bu mesaj düzenlendi|(?:ta )?wiadomość (?:została )?(?:edytowana"
    r"|zmieniona)"
    r"|tato zpráva byla upravena|det här meddelandet (?:har )?redigera[dt]e?s?|denne meldingen ble redigert"
    r"|denne besked blev redigeret|viestiä on muokattu|pesan ini diedit|このメッセージは編集されました"
    r"|此訊息已編輯|此消息已编辑|此消息已被编辑"
    r"|수정된 메시지입니다|تم تعديل هذه الرسالة|ההודעה הזו נערכה)[.。]?[\u200e\u200f]*>[\s\u200e\u200f]*$"
    r"|[\s]*\u200e<[^<>:\n]{6,60}>[\s\u200e\u200f]*$"  # in any language, by the mark of iPhones
)
_KINDS = {
    "images": r"image|photo|imagen|foto|bild|immagine|imagem|afbeelding|изображение|görüntü|resim|画像|圖片|图片"
    r"|照片|이미지|사진"
    r"|الصورة|صورة|obraz|obrázek|bilde|billede|kuva|gambar|hình ảnh|התמונה|छवि",
    "videos": r"video|vidéo|vídeo|видео|動画|影片|视频|동영상|الفيديو|wideo|הסרטון|वीडियो",
    "voice messages": r"audio|áudio|voice|аудио|ses\b|音声|語音|音频|语音|오디오|음성|الصوت|ljud|lyd|dźwięk|sprach",
    "stickers": r"sticker|figurinha|стикер|наклейка|çıkartma|スタンプ|ステッカー|貼圖|贴纸|스티커|ملصق|naklejk"
    r"|klistermærke",
    "animations": r"gif",
    "contacts": r"contact|kontakt|contatto|contato|контакт|連絡先|聯絡人|名片|연락처|kişi|جهة",
    "files": r"document|dokument|belge|документ|文書|文件|문서|المستند",
}
_LEFT_OUT = (
    r"omitted|omitid[oa]s?|ocultad[oa]s?|ocult[oa]s?|weggelassen|ausgelassen|ausgeschlossen|absente?s?|omis(?:e?s)?"
    r"|omess[oaie]"
    r"|weggelaten|отсутствует|пропущено?|dahil edilmedi|atlanmış|省略|생략|غير مشمول|استبعاد|vynechán|pominięt|utelämna"
    r"|utelat|udelad"
    r"|dihilangkan|bỏ qua|הושמט|हटा"
)
_LINE_LEFT_OUT = re.compile(
    rf"(?i)(?:[\w ⁨⁩\u200e]{{1,30}}\s?(?:{_LEFT_OUT})\w*|(?:{_LEFT_OUT})\w*\s[\w ]{{1,20}}"
    r"|\w{1,10}は省略されました)"
)
_ANY = re.compile(r"<(?!https?:)(?=[^<>\n]*(?:[ \xa0]|[^\x00-\x7f]))[^<>\n:]{3,60}>")
_NAMED = re.compile(
    r"(?:<[^<>:\n]{2,25}:\s?(?P<a>[^<>\n]+\.\w{2,5})>|(?P<b>\S[^\n]*?\.\w{2,5}) \([^()\n]{4,40}\)"
    r"|(?P<c>[^\n]+\.\w{2,5}) • .*)"
)
_BY_NAME = {
    "images": r"(?i)^IMG-|-PHOTO-|\.(?:jpe?g|png|heic)$", "videos": r"(?i)^VID-|-VIDEO-|\.(?:mp4|mov|3gp)$",
    "voice messages": r"(?i)^(?:PTT|AUD)-|-AUDIO-|\.(?:opus|ogg|m4a|mp3|aac|amr)$",
    "stickers": r"(?i)^STK-|-STICKER-|\.webp$", "animations": r"(?i)-GIF-|\.gif$", "contacts": r"(?i)\.vcf$",
}  # fmt: skip
MARKS = re.compile("[\u200e\u202a-\u202e\u2066-\u2069\ufeff]")


def read_body(body: str) -> tuple[str, str, str]:
    """Read what stands behind a sender: the text that was typed, the kind of anything else, and its caption.

    >>> from memlab.datasets.importers.whatsapp_words import read_body
    >>> read_body("<Media omitted>"), read_body("Room 6 <This message was edited>")
    (('', 'media', ''), ('Room 6', 'edited messages', ''))
    """
    generated = body.lstrip(" \u200f").startswith("\u200e")
    if edited := _EDITED.search(body):
        rest = MARKS.sub("", body[: edited.start()]).strip()
        if rest:
            return rest, "edited messages", ""
    first, _, more = MARKS.sub("", body).strip().partition("\n")
    first, more = first.strip(), more.strip()
    if not more and _DELETED.fullmatch(first):
        return "", "deleted messages", ""
    if kind := _media_kind(first):
        named = _NAMED.fullmatch(first)
        file = (named["a"] or named["b"] or named["c"]) if named else ""
        what = kind.removesuffix("s")
        known = f"{what}: {file}" if kind in ("files", "contacts") and file else what * bool(more)
        return more, kind, known
    if before := re.search(r"\s*\u200e(<[^<>:\n]{2,25}:[^<>\n]+>|[^\n]{3,40})\s*$", body):
        kind = _media_kind(MARKS.sub("", before[1]).strip())
        if kind and (text := MARKS.sub("", body[: before.start()]).strip()):
            return text, kind, kind.removesuffix("s")
    if not more and (_MISSED.fullmatch(first) or (generated and CALL.match(first))):
        return "", "calls", ""
    if generated and not more and "://" not in first:
        return "", "system messages", ""
    if not generated and ENCRYPTED.search(first) and len(first) > 60:
        return "", "system messages", ""
    return MARKS.sub("", body).strip(), "", ""


def _media_kind(line: str) -> str:
    """Give the kind of what a line stands for, in the plural; empty if it is talk."""
    if named := _NAMED.fullmatch(line):
        file = named["a"] or named["b"] or named["c"]
        return next((kind for kind, form in _BY_NAME.items() if re.search(form, file)), "files")
    inner = line[1:-1].strip() if line[:1] == "<" and line[-1:] == ">" else line
    kind = next((kind for kind, form in _KINDS.items() if re.search(form, inner.lower())), "")
    # Without brackets, three words at most that name a kind: "The photo was omitted" may be typed.
    placeholder = _LINE_LEFT_OUT.fullmatch(inner) and (inner != line or (kind and inner.count(" ") < 3))
    return (kind or "media") if line == "null" or _ANY.fullmatch(line) or placeholder else ""
