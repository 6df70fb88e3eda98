"""What WhatsApp writes into a chat in place of what people said, in the languages of its users.

The words are those of CLDR and of public readers of exports (chatcarve, whatstk, chat-miner,
whats_json, chatmatter).
"""

from __future__ import annotations

import re
from functools import lru_cache

DIGITS = {start + i: str(i) for start in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for i in range(10)}
"""Arabic, Persian, Devanagari, Bengali and Thai digits to those of ASCII."""
_PM = (
    r"pm|下午|晚上|傍晚|午後|오후|中午|م|مساء|مساءً|بظ|بعدازظهر|μμ|ös|ch|nachm|nachmittags|nm|du|ip|em|eftermiddag|eh"
    r"|ptg|petang|e?pasdites|md|odp|pop|popoldne|popodne|popiet|pēcp|пп|слоб|попл|үх|тк|tk|אחהצ|หลังเที่ยง|ညနေ|अपराह्न|मउ"
    r"|பிற்பகல்|ಅಪರಾಹ್ನ|ਬਾਦੁ|පව|ከሰዓት|tarde|noche|afternoon|evening"
)
_AM = (
    r"am|上午|凌晨|早上|清晨|午夜|午前|오전|ص|صباحا|صباحًا|قظ|قبلازظهر|πμ|öö|sa|vorm|vormittags|vm|de|ap|fm|förmiddag|fh"
    r"|pg|pagi|e?paradites|pd|dop|dopoldne|prijepodne|priešpiet|prp|priekšp|дп|проб|претпл|үө|тң|to|לפנהצ|ก่อนเที่ยง|နံနက်"
    r"|पूर्वाह्न|मपू|முற்பகல்|ಪೂರ್ವಾಹ್ನ|ਪੂਦੁ|පෙව|ጥዋት|mañana|madrugada|manhã|morning"
)
"""Halves of the day as CLDR has them, without points and spaces; at noon, which it names in Chinese, twelve stays."""


@lru_cache(1024)
def day_period(words: str) -> str:
    """Give the half of the day that stands beside a time: ``am``, ``pm`` or nothing.

    >>> from memlab.datasets.importers.whatsapp_words import day_period
    >>> day_period(" p.\\xa0m."), day_period("上午"), day_period(" à ")
    ('pm', 'am', '')
    """
    said = words.lower()
    for word in (said, *(part for part in said.split() if len(part) > 3)):
        half = re.sub(r"[\s.,،'’\"״\u200b-\u200f]", "", word)
        if re.fullmatch(f"{_PM}|{_AM}", half):
            return "pm" if re.fullmatch(_PM, half) else "am"
    return ""


TITLE = re.compile(
    r"(?i)^(?P<before>.*?)(?:whatsapp|واتساب)[ _-]*(?P<chat>(?:chatverlauf|chati|chatt?|чат|conversation|gesprek"
    r"|keskustelu|razgovor|csevegés|pokalbis|samtale|klepet|sohbeti|söhbəti|चैट|চ্যাট|વાત|チャット|ಸಂಭಾಷಣೆ|대화|ചാറ്റുകൾ"
    r"|गप्पा|உரையாடல்|సంభాషణ|بات چیت)(?=[ _:–-]|$))?[ _:–-]*(?:(?:with|mit|con|com o|com|avec|met|med|z|ze|ile|с контактом"
    r"|с|з|s uživatelem|s používateľom|s|dengan|amb|cu|su|vele:|henkilön|με|với|กับ|با|مع|עם|与"
    r"|與)[ _])?(?P<name>.*?)(?: kanssa| ?的[对對][话話])?$"
)
WITH = re.compile(
    r" ?(?:との|님과의?(?: 카카오)?| ile| ilə| bilan|এর সাথে|સાથેની|के साथ|ಜೊತೆ|മായുള്ള|सोबतच्या|உடன்|తో|کے ساتھ)$"
)


ENCRYPTED = re.compile(
    r"(?i)end-to-end|ende-zu-ende|extremo a extremo|bout en bout|pont[ao] a pont[ao]|crittografat|сквозн|uçtan uca"
    r"|暗号化|端到端|端對端|종단 ?간|مشفرة|zabezpečen|szyfrowan|krypter|מוצפנ|mã hóa đầu cuối|เข้ารหัส|एन्क्रिप्ट"
    r"|päästä päähän|шифр|κρυπτογραφ|titkosít|criptat|encripta|disulitkan|enkrip[cs]i|salataan|رمزگذاری|এনক্রিপ্ট"
)
EVENT = re.compile(
    r"(?i)\b(?:created (?:this |the )?group|changed (?:the|this|their|to|his|her)|security code|added|removed|left"
    r"|joined using|joined from|was added|pinned a message|end-to-end|turned (?:on|off) disappearing|(?:reset"
    r"|requested) (?:this|to)|started a call|deleted this group|is a contact|now an admin|hat (?:die |den |das |dich "
    r"|diese )|hast (?:die|den|das|diese)|haben die|wurde (?:hinzugefügt|entfernt)|sicherheitsnummer|ist (?:der gruppe"
    r"|über|jetzt)|creó (?:el|este) grupo|cambió (?:el|la|este|los|su)|añadió a|agregó a|eliminó a|salió del|se unió"
    r"|criou (?:o|este) grupo|mudou (?:o|a|para|os)|alterou|adicionou|removeu|saiu|entrou usando|a créé|a changé"
    r"|a modifié|a ajouté|a retiré|a quitté|a rejoint|avez (?:créé|changé|modifié|ajouté|retiré)|ha (?:creato|cambiato"
    r"|modificato|aggiunto|rimosso|abbandonato)|è entrat[oa]|heeft (?:de|deze|het|dit)|hebt (?:de|deze)|is toegevoegd"
    r"|(?:zmienił|utworzył|dodał|opuścił)a?|usunął|(?:создал|изменил|добавил|удалил|покинул)(?:а|\(-?а\))?|вышел|вышла"
    r"|grubu|gruptan|kişisini ekledi|skapade gruppen|ändrade|lade till|lämnade|opprettet gruppen|oppretta|endret|la til"
    r"|forlot)[ ”\"„«“»(.]|[“”\"„«].*|がグループ|を追加|が退出|님이|群組|群组|创建了|建立了|加入了"
)
_PAIRED = re.compile(r"\"[^\"]*\"|“[^”]*”|”[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|\([^)]*\)")


def is_event(sender: str) -> bool:
    """Say whether what stands before a colon is an event: its words, or a quote that the colon stands in."""
    said = _PAIRED.sub("", sender)
    return bool(re.search('[“”"„«「]', said) or (said.count(" ") > 2 and EVENT.search(f"{said} ")))


CALL = re.compile(
    r"(?i)(?:missed|silenced|voice|video|group)[ \w]*call|verpasster? \w*anruf|(?:sprach|video)anruf|llamada"
    r"|videollamada|(?:chamada|ligação)|appel (?:vocal|vidéo|manqué)|(?:video)?chiamata|gemiste? |пропущенный|(?:аудио"
    r"|видео)звонок|cevapsız|不在着信|音声通話|ビデオ通話|未接|语音通话|語音通話|부재중|مكالمة|nieodebrane|zmeškan"
    r"|missat|tapt "
)
_MISSED = re.compile(
    r"(?i)(?:missed|silenced) (?:group )?(?:voice|video) call(?: at .{4,12})?|verpasster (?:sprach"
    r"|video)anruf(?: um .{4,12})?|(?:video)?llamada (?:de voz )?perdida(?: a las? .{4,12})?|chamada de (?:voz"
    r"|vídeo) perdida.{0,16}|ligação de (?:voz|vídeo) perdida|appel (?:vocal|vidéo) manqué.{0,12}"
    r"|(?:video)?chiamata (?:vocale )?persa.{0,14}|gemiste (?:spraak|video)oproep.{0,14}|пропущенный (?:аудио"
    r"|видео)?звонок.{0,10}|cevapsız .{4,14} arama.{0,10}|(?:音声|ビデオ)?通話?(?:の)?不在着信|未接.{2,6}"
    r"|부재중 .{2,6}통화"
)
_DELETED = re.compile(
    r"(?i)(?:this message was deleted|you deleted this message(?: as admin)?|message deleted"
    r"|diese nachricht wurde (?:von .*)?gelöscht|du hast diese nachricht (?:als admin )?gelöscht|(?:se eliminó"
    r"|eliminaste) este mensaje|este mensaje fue eliminado|mensaje eliminado|(?:essa|esta) mensagem foi (?:apagada"
    r"|eliminada)(?: pelo remetente)?|mensagem apagada|(?:você )?apagou (?:esta|essa) mensagem|eliminou esta mensagem"
    r"|ce message a été supprimé|vous avez supprimé ce message|message supprimé|questo messaggio è stato eliminato"
    r"|hai eliminato questo messaggio|aquest missatge (?:s'ha suprimit|està esborrat)|has (?:suprimit"
    r"|esborrat) aquest missatge|acest mesaj a fost șters|ați șters acest mesaj|ai șters acest mesaj"
    r"|dit bericht is verwijderd|(?:je|u) hebt dit bericht verwijderd|det här meddelandet (?:raderades|togs bort)"
    r"|detta meddelande raderades|du (?:raderade|tog bort) (?:det här meddelandet|detta meddelande)"
    r"|du har tagit bort meddelandet|denne meldingen ble slettet|du slettet denne meldingen|denne besked (?:blev"
    r"|er blevet) slettet|du (?:slettede|har slettet) denne besked|tämä viesti poistettiin|poistit tämän viestin"
    r"|šī ziņa tika izdzēsta|jūs izdzēsāt šo ziņu|ezt az üzenetet (?:törölték|törölted)|ez az üzenet törlésre került"
    r"|törölted ezt az üzenetet|(?:это |данное )?сообщение (?:было )?удалено|вы удалили (?:это|данное) сообщение"
    r"|це повідомлення було видалено|ви видалили це повідомлення|съобщението беше изтрито|изтрихте това съобщение"
    r"|ova (?:je poruka|poruka je) izbrisana|izbrisali ste ovu poruku|to sporočilo (?:je bilo izbrisano|ste izbrisali)"
    r"|ta wiadomość została usunięta|usunięto tę wiadomość|usunąłeś(?:\(-?[ęa]?łaś\)|\(aś\))? tę wiadomość"
    r"|tato zpráva byla (?:smazána|odstraněna)|(?:smazali|odstranili) jste tuto zprávu|tuto zprávu jste (?:smaza"
    r"|odstrani)l/a|táto správa bola odstránená|túto správu ste odstránili|αυτό το μήνυμα διαγράφηκε"
    r"|διαγράψατε (?:αυτό )?το μήνυμα|bu mesaj silindi|bu mesajı sildiniz|pesan ini (?:telah )?dihapus"
    r"|anda (?:telah )?menghapus pesan ini|mesej ini telah dipadam|anda telah memadamkan mesej ini"
    r"|itong mensahe ay binura na|binura mo itong mensahe|tin nhắn này đã bị x(?:óa|oá)|bạn đã x(?:óa|oá) tin nhắn này"
    r"|ข้อความนี้(?:ได้ถูกลบ|ถูกลบแล้ว)|คุณ(?:ได้)?ลบข้อความนี้|このメッセージは削除されました|このメッセージを削除しました"
    r"|メッセージの送信を取り消しました|[此这]条?[訊消][息]已被?[刪删]除|信息已删除|已刪除此訊息"
    r"|[您你]已?[刪删]除(?:此訊息|了?[此这]条消息|这个信息)|(?:이 메시지는 )?삭제(?:되었습니다|된 메시지입니다"
    r"|한 메시지입니다)|(?:이 )?메시지를 삭제했습니다|تم حذف هذه الرسالة|لقد ح[ذَ]+فت هذه الرسالة|أنت حذفت هذه الرسالة"
    r"|این پیام حذف شد(?:ه است)?|شما این پیام را حذف کردید|یہ (?:میسج حذف کر دیا گیا ہے|پیغام حذف کیا گیا)"
    r"|آپ نے (?:یہ میسج حذف کر دیا ہے|اس پیغام کو حذف کیا)|(?:ההודעה הזו|הודעה זו) נמחקה|מחקת (?:את ההודעה הזו"
    r"|הודעה זו)|यह मैसेज (?:मिटाया गया|डिलीट कर दिया गया है)|यह संदेश (?:मिटाया गया|हटा दिया गया था)"
    r"|आपने यह (?:मैसेज डिलीट किया|संदेश मिटाया)|हा (?:मेसेज हटवण्यात आला|संदेश हटविण्यात आला होता)|तुम्ही हा मेसेज हटवला"
    r"|आपण हा संदेश हटविलात|આ (?:મેસેજ ડિલીટ કરાયો|સંદેશ રદ્દ કરાયો)|તમે આ (?:મેસેજ ડિલીટ|સંદેશને રદ્દ) કર્યો"
    r"|এই (?:মেসেজটি বাদ দেওয়া হয়েছে|বার্তাটি মুছে ফেলা হয়েছে)|আপনি এই (?:মেসেজটি বাদ দিয়েছেন|বার্তাটি মুছে ফেলেছেন)"
    r"|un admin\.(?:, [^?]+,)? eliminó este mensaje|bu mesaj [^?]+ tarafından silindi|管理员[^?？]*已删除这条消息"
    r"|ההודעה נמחקה על ידי [^?]+|حذف (?:أحد المشرفين|المشرف [^؟]+) هذه الرسالة|यह मैसेज [^?]+ ने डिलीट कर दिया है"
    r"|یہ میسج [^؟]+ نے حذف کر دیا ہے)(?: (?:by (?:an )?admin|oleh admin|por um(?:/a)? admin|pelo/a admin|par (?:l."
    r"|un ou une )admin|da un ammin|dall.ammin|админом)[^?]*)?[.。।۔]?"
)
_EDITED = re.compile(  # with the words, or in any language by the mark of iPhones
    r"(?i)(?:<(?=[^<>]*(?:message|nachricht|mensaje|mensagem|messaggio|bericht|сообщение|повідомлення|mesaj|wiadomość"
    r"|zpráva|správa|meddeland|melding|besked|viesti|üzenet|pesan|mesej|μήνυμα|メッセージ|訊息|消息|메시지|رسالة|הודעה"
    r"|پیام|मैसेज))[^<>\n]{0,30}(?:edit|bearbeit|modifi|bewerkt|изменен|змінен|düzenlen|edytow|zmienion|uprav|redig"
    r"|muokat|szerkeszt|επεξεργ|編集|編輯|编辑|수정|تعديل|נערכ|ویرایش|एडिट)[^<>\n]{0,30}>"
    r"|\u200e<[^<>:\n]{6,60}>)[\s\u200e\u200f]*$"
)
_KINDS = {
    "animations": r"gif(?:-анімацію|-animaatio| 圖片| 动态图| fájl)?|صورة gif|plik gif|ảnh gif",
    "stickers": r"sticker|stiker|figurinha|стикер|наклейка|наклейку|çıkartma|スタンプ|ステッカー|貼圖|贴图|贴纸|스티커"
    r"|ملصق|الملصقات|naklejka|naklejkę|klistermærke|klistremerke|nálepka|naljepnica|matrica|pelekat|αυτοκόλλητο|استیکر"
    r"|สติกเกอร์|स्टिकर|סטיקר",
    "videos": r"videonotiz|clip video|videoclip|video(?: note| message)?|vidéo|vídeo|videó|видео|відео|動画|ビデオ"
    r"|影片|视频|동영상|비디오|الفيديوهات|الفيديو|wideo|הסרטון|वीडियो|व्हिडीओ|βίντεο|ویدیو|วิดีโอ",
    "voice messages": r"(?:ficheiro de |plik )?[aá]udio|voice(?: message)?|аудиофайл|аудио|аудіо|ses|音声|[語语]音"
    r"|音[訊频]|오디오|음성|الصوت|ljud|lyd|dźwięk|sprach|hang|ήχος|صدا|ไฟล์เสียง|tệp âm thanh|ऑडियो|קטע קול|השמע",
    "contacts": r"contact(?: card)?|contacto|kontaktkarte|kontaktkort|kontakt|contatto|contato|карточка контакта"
    r"|картка контакту|контакт|連絡先カード|連絡先|聯絡人卡片|聯絡人|联系人卡片|名片|연락처 카드|연락처|kişi kartı"
    r"|kişi|بطاقة جهة اتصال|جهة|fiche contact|scheda contatto|tarjeta de contacto|cartão do contato|visitekaartje"
    r"|contactkaart|vizitka|posjetnica|névjegykártya|yhteystietokortti|kartu kontak|kad kenalan|karta kontaktu"
    r"|wizytówka kontaktu|thẻ liên lạc|บัตรรายชื่อ|कॉन्टैक्ट कार्ड|κάρτα επαφής|כרטיס איש קשר",
    "files": r"document|documento|dokumentum|dokument|dokumen|belge|документ|文書|書類|ドキュメント|文件|文档|문서"
    r"|المستند|έγγραφο|מסמך|سند|เอกสาร|tài liệu|डॉक्यूमेंट",
    "images": r"image|photo|imagen|foto|bild|immagine|imagem|afbeelding|изображение|зображення|görüntü|resim|画像|圖片"
    r"|图片|圖像|图像|照片|이미지|사진|الصورة|صورة|obraz|obrázek|obrázok|bilde|billede|kuva|gambar|imej|hình ảnh"
    r"|התמונה|תמונה|छवि|इमेज|फ़ोटो|slika|kép|imagine|(?:η )?εικόνα|ইমেজ|تصویر|รูปภาพ",
}
_LEFT_OUT = (
    r"omitted|omitid[oa]s?|ocultad[oa]s?|ocult[oa]s?|não revelad[oa]s?|weggelassen|ausgelassen|ausgeschlossen"
    r"|absente?s?|manquante?s?|retirée?s?|omise?s?|omès|omesa|omesos|omis[ăa]|omess[oaie]|esclus[oa]|non inclus[oa]"
    r"|weggelaten|weggelaat|отсутствует|не добавлен|пропущен[аоы]?|опущены|відсутн(?:ій|[єяі])|не додано|dahil edilmedi"
    r"|atlanmış|atlandı|は省略されました|は含まれていません|を省略|省略|已?被?略去|已?被?忽略|已?被?省略|생략됨|생략"
    r"|제외됨|제외|غير مشمول|غير مضمنة|تم استبعاد|استبعاد|لم يتم إدراج|تم حذف|محذوفة|vynechán[aoy]?|vynechan[ýáée]"
    r"|pominię[tc]\w|utelämna[dt]\w?|utesluten|uteslutet|utelslutet|utelatt|ikke inkludert|sløyfet|udelad\w*|udeladt"
    r"|dihilangkan|disingkirkan|tidak disertakan|tidak dimasukkan|đã bỏ qua|đã bỏ|bỏ qua|הושמטה?|לא נכללה|הוסרו"
    r"|kihagyva|kihagyása|elhagyva|izostavljen[ao]?|izpuščen|изоставени|παραλείφθηκ(?:ε|αν)|παραλήφθηκε|παράληψη"
    r"|εξαίρεση|বাদ দেওয়া হয়েছে|نکال دی گئی ہے|نظر ?انداز|حذف شد|jätetty pois|jätettiin pois|ei sisällytet\w+|हटाई गई"
    r"|हटाई गयी|छोड़ दी गई|छोड़ा गया|वगळल[ीाे]|પડતી મૂકાઈ|પડતી મુકાઈ|પડતું મુકાયું|ละเว้น|ไม่มี|ถูกลบ|fără|küldése sikertelen"
)
_MEDIA = (  # in angle brackets, on Android and in WhatsApp Web
    r"m[eéí]di[aáej]|meedia|medya|multi[mv]|медиа|медіа|медиј|πολυμέσ|vedlegg|fayl|файл|фајл|媒|メディア|미디어|وسائط"
    r"|מדיה|मीडिया|মিডিয়া|മീഡിയ|ಮೀಡಿಯಾ|ਮੀਡੀਆ|મીડિયા|میڈیا|رسان|پ[يی]وست|مدیا|สื่อ|ஊடக|మాధ్యమ|message$"
)
_ATTACHED = (
    r"file attached|fișier atașat|файл добавлен|附件檔案|附加檔案|文件附件|file allegato|arxiu adjunt"
    r"|soubor byl přiložen|file terlampir|添付ファイル有り|συνημμένο αρχείο|fil vedhæftet|फाइल संलग्न|קובץ מצורף"
    r"|fail dilampirkan|arquivo anexado|फाइल अटैच कर दी गई है|załączony plik|tệp đính kèm|bifogad fil|súbor pripojený"
    r"|پیوستہ فائل|dosya ekli|ไฟล์ที่แนบ|vedlagt fil|liitetiedosto|fichier joint|archivo adjuntado|archivo adjunto"
    r"|datoteka u privitku|priložena datoteka|fájl csatolva|bestand bijgevoegd|прикачен файл|ফাইল সংযুক্ত হয়েছে"
    r"|datei angehängt|파일 첨부됨|الملف مرفق|ficheiro anexado|файл додано"
)
_OMITTED = "(?:(?:{0}) ?(?:{1})|(?:{1}) ?(?:{0}))[.。।]?"
_ANY, _DOCUMENT = (
    _OMITTED.format(kinds, _LEFT_OUT) for kinds in ("|".join(_KINDS.values()), _KINDS["files"])
)
_PLACEHOLDER = re.compile(
    # document omitted, a.pdf • 2 pages document omitted; <attached: a.jpg>, a.jpg (file attached),
    # <Media omitted>
    rf"(?i)(?:null|{_ANY}|\d+ contacts? shared|gif attached"
    rf"|(?P<a>\S.*?\.\w{{2,5}})(?: • [^•]*?)? (?:{_DOCUMENT}|<[^<>:]{{2,25}}: [^<>]+\.\w{{2,5}}>)"
    rf"|(?:<[^<>:]{{2,25}}:\s?(?P<b>[^<>]+\.\w{{2,5}})>|(?P<c>\S.*?\.\w{{2,5}}) \((?:{_ATTACHED})\)"
    r"|(?P<d>[a-z]{3}-\d{8}-WA\d+\.\w{2,5}) \([^()]{4,40}\)|<(?!https?:)(?P<angle>[^<>:]{3,60})>)(?P<more> .*)?)"
)
_MARKED = re.compile(r"\u200e(<[^<>\n]{3,300}>|[^\n\u200e<>]{3,60})[\s\u200f]*$")
_SOME_LEFT_OUT = re.compile(rf"(?<![a-zà-ž])(?:{_LEFT_OUT})")
_BY_NAME = {
    "images": r"(?i)^IMG-|-PHOTO-|\.(?:jpe?g|png|heic)$", "videos": r"(?i)^VID-|-VIDEO-|\.(?:mp4|mov|3gp)$",
    "voice messages": r"(?i)^(?:PTT|AUD)-|-AUDIO-|\.(?:opus|ogg|m4a|mp3|aac|amr)$",
    "stickers": r"(?i)^STK-|-STICKER-|\.webp$", "animations": r"(?i)-GIF-|\.gif$", "contacts": r"(?i)\.vcf$",
}  # fmt: skip
MARKS = re.compile("[\u200e\u202a-\u202e\u2066-\u2069\ufeff]")
_LONGEST = (
    400  # characters of what WhatsApp writes; a search over a long message would take minutes
)


def read_body(body: str) -> tuple[str, str, str]:
    """Read what stands behind a sender: the text that was typed, the kind of anything else, and its caption.

    >>> from memlab.datasets.importers.whatsapp_words import read_body
    >>> read_body("<Media omitted>"), read_body("Room 6 <This message was edited>")
    (('', 'media', ''), ('Room 6', 'edited messages', ''))
    """
    body = re.sub(r"^\[Forwarded(?: many times)?\] ", "", body.rstrip())
    generated = re.match("[ \u200f]*\u200e(?!@)", body)
    edited = _EDITED.search(body, max(0, len(body) - _LONGEST)) if ">" in body[-4:] else None
    if edited and (rest := clean(body[: edited.start()])):
        return _read_media(body[: edited.start()]) or (rest, "edited messages", "")
    if media := _read_media(body):
        return media
    first, _, more = clean(body).lstrip("\u200f ").partition("\n")
    if more:
        return clean(body), "", ""
    if _DELETED.fullmatch(first):
        return "", "deleted messages", ""
    if _MISSED.fullmatch(first) or (generated and CALL.match(first)):
        return "", "calls", ""
    about = any(word in first.lower() for word in ("whatsapp", "واتساب", "this chat", "this group"))
    notice = about and len(first) > 60 and ENCRYPTED.search(first)
    waits = first.startswith("Waiting for this message. This may take")
    if notice or waits or (generated and "://" not in first):
        return "", "system messages", ""
    return clean(body), "", ""


def clean(text: str) -> str:
    """Take the marks of direction out of a text, and the space around it."""
    return MARKS.sub("", text).strip()


def _read_media(body: str) -> tuple[str, str, str] | None:
    """Read a message that begins or ends with what stands for media; ``None`` for any other."""
    first, _, more = clean(body).lstrip("\u200f ").partition("\n")
    found = _PLACEHOLDER.fullmatch(first.strip()) if len(first) < _LONGEST else None
    if found and (kind := _media_kind(found)):
        file = next((name for name in found.group("a", "b", "c", "d") if name), "")
        text = f"{found['more'] or ''}\n{more}".strip()
    elif (marked := _MARKED.search(body, max(0, len(body) - _LONGEST))) and (
        kind := _marked_kind(clean(marked[1]))
    ):
        text, file = clean(body[: marked.start()]), ""
        if kind in ("files", "contacts") and (
            named := re.fullmatch(r"(.+\.\w{2,5})(?: • .*)?", text)
        ):
            text, file = "", named[1]
    else:
        return None
    what = kind.removesuffix("s")
    return (
        text,
        kind,
        f"{what}: {file}" if file and kind in ("files", "contacts") else what * bool(text),
    )


def _media_kind(found: re.Match[str]) -> str:
    """Give the kind of what a placeholder stands for, in the plural; empty if it is talk in angle brackets."""
    if file := next((name for name in found.group("a", "b", "c", "d") if name), ""):
        return next((kind for kind, form in _BY_NAME.items() if re.search(form, file)), "files")
    said = (found["angle"] or found[0]).lower()
    any_media = (
        not found["more"] and re.search(_MEDIA, said) and (" " in said or not said.isascii())
    )
    return (
        ""
        if found["angle"] and not any_media and not _SOME_LEFT_OUT.search(said)
        else _named_kind(said) or "media"
    )


def _marked_kind(line: str) -> str:
    """Give the kind of what follows a mark of iPhones."""
    if found := _PLACEHOLDER.fullmatch(line):
        return _media_kind(found) or "media"
    return _named_kind(line.lower()) if _SOME_LEFT_OUT.search(line.lower()) else ""


def _named_kind(said: str) -> str:
    return next(
        (kind for kind, form in _KINDS.items() if re.search(rf"(?<![a-zà-ž])(?:{form})", said)), ""
    )
