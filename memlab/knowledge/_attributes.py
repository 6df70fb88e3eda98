"""Attributes that a message names with their values: numbers, codes, roles, days, counts, names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from memlab.knowledge._patterns import KIN, PART, P, W
from memlab.knowledge._phrase import IT, Statement, nominal, proper, trimmed
from memlab.language.people import PERSONS, PETS

_NOTED = W["noted"]
COUNT_WORD, ROLE = PART["COUNT_WORD"], PART["ROLE"]
_ORDINALS = {
    word: n
    for n, words in enumerate(("second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh"), 2)
    for word in words.split()
}


@dataclass
class Talk:
    """Who speaks, and who was spoken of, while a session is read.

    :param names: names in lower case → as they are written.
    :param he: the person whom "he" would mean; ``she`` likewise.
    :param role: what a name is still wanted for: "my boss isn't Ingrid."
    :param about: who or what the message is about, other than who speaks.
    :param topic: what a message of notes puts before a colon: "ticketing: staying on OTRS".
    :param wanted: subject and predicate that the next sentence may give a name for: "found a place! Gentbrugge."
    :param ended: subject and predicate of what was just given up: "it's tea from here on".
    """

    speaker: str
    names: Mapping[str, str] = field(default_factory=dict)
    he: str | None = None
    she: str | None = None
    role: str | None = None
    about: str | None = None
    ended: tuple[str, str] | None = None
    wanted: tuple[str, str] | None = None
    topic: str | None = None


def read(plain: str, talk: Talk) -> Iterator[Statement]:
    """Read what a whole sentence says: of a pair, by what it corrects, counts, or only points to.

    >>> from memlab.knowledge._attributes import Talk, read
    >>> list(read("me and Bram broke up", Talk("Nora"))), list(read("it's 9021 now", Talk("Nora")))[0].object
    ([Statement(subject='Nora', predicate='broke up with', object='Bram')], '9021')
    """
    me, names = talk.speaker, talk.names
    wanted, talk.wanted = talk.wanted, None
    if wanted and (name := P["apposed"].match(plain)) and name["name"].split()[0].lower() not in _PRONOUNS:
        yield Statement(*wanted, name["real"] or name["name"])
        return
    for pattern in (P["me_and"], P["and_me"]):
        pair = pattern.match(plain)
        if pair and pair["who"].lower() not in _NOBODY:
            who = names.get(pair["who"].lower(), pair["who"].capitalize())
            talk.he = talk.she = who
            if apart := P["apart"].match(pair["rest"]):
                word = apart[0].lower()
                yield Statement(
                    me,
                    "separated from"
                    if "separat" in word
                    else "is divorced from"
                    if "divorc" in word
                    else "broke up with",
                    who,
                )
                return
            if P["a_thing"].search(pair["rest"]) and not P["together"].match(pair["rest"]):
                yield Statement(me, "is dating", who)
                return
            if state := P["together"].match(pair["rest"]):
                word = state["state"].lower()
                yield Statement(
                    me, {"engaged": "is engaged to", "married": "is married to"}.get(word, "is dating"), who
                )
                return
    if corrected := P["not_but"].search(plain):
        yield Statement(f"{me}'s {_role(corrected['role'])}", "is", corrected["who"])
        return
    if (gone := P["no_more"].search(plain)) and (new := P["its_role"].search(plain)):
        yield Statement(f"{me}'s {_role(gone['role'])}", "is", names.get(new["who"].lower(), new["who"].capitalize()))
        return
    if talk.role and (name := P["it_is"].match(plain)) and name["who"].lower() not in _PRONOUNS:
        yield Statement(talk.role, "is", name["who"])
        talk.role = None
        return
    if (pay := P["pay"].search(plain)) and not P["corrected"].search(plain):
        yield Statement(me, "earns", pay["value"])
    if room := P["room"].search(plain):
        yield Statement(f"{me}'s {room['name'].lower()}", "is", room["value"])
    if jilted := P["jilted"].match(plain):
        yield Statement(me, "broke up with", jilted["who"])
    elif over := P["over_between"].search(plain):
        who = over["who"] or over["first"]
        yield Statement(me, "broke up with", names.get(who.lower(), who.capitalize()))
    talk.role = f"{me}'s {_role(wrong['role'])}" if (wrong := P["is_not"].search(plain)) else talk.role
    if arrow := P["arrow"].match(plain):
        yield Statement(IT, "is now", f"not {arrow['old']} but {arrow['new']}")
        return
    if (meant := P["meant"].search(plain)) and len(meant["new"].split()) < 5 and len(meant["old"].split()) < 5:
        yield Statement(IT, "is now", f"not {meant['old'].strip()} but {meant['new'].strip()}")
    elif match := P["corrected"].search(plain):
        yield Statement(IT, "is now", f"not {match['old'] or match['gone']} but {match['value'] or match['new']}")
    elif match := P["its_name"].search(plain):
        yield Statement(IT, "is now", names.get(match["who"].lower(), match["who"]))
    elif (match := P["elliptic"].search(plain)) and not _attributed(plain) and not P["word_value"].match(plain):
        yield Statement(IT, "is now", match["value"].rstrip(".,"))
    elif new := P["new_one"].match(plain):
        yield Statement(IT, "is now", new["value"].rstrip(".,"))
    elif back := P["is_back"].match(plain):
        yield Statement(IT, "is back", back["what"])
    elif P["in_place"].match(plain):
        yield Statement(IT, "came about", "home")
    else:
        yield from _counts(plain)


_NUMBER = {"one": 1, "two": 2, "three": 3, "four": 4}


def _counts(plain: str) -> Iterator[Statement]:
    if (gone := P["some_gone"].search(plain)) and P["some_gone_verb"].search(plain):
        yield Statement(IT, "now numbers", f"-{_NUMBER[gone['n'].lower()]} {gone['noun']}")
        return
    if lost := P["lost_one"].search(plain):
        yield Statement(IT, "now numbers", f"-1 {lost['noun']}")
        return
    if every := P["all_gone"].match(plain):
        yield Statement(IT, "is off", every["noun"])
        return
    if another := P["one_more"].search(plain):
        yield Statement(IT, "now numbers", f"+1 {another['noun']}")
    if count := P["count_of"].match(plain):
        yield Statement(IT, "now numbers", f"{count['n'].lower()} {count['noun']}")
        return
    more = P["another"].search(plain) or P["an_ordinal"].match(plain)
    if more and (more["noun"] or "").lower() not in _NOT_COUNTED:
        yield Statement(IT, "now numbers", f"{_ORDINALS[more['n'].lower()]} {more['noun'] or ''}".strip())
    elif total := P["total"].search(plain):
        n, noun = (total[f"{part}{way}"] or "" for way in ("", "2", "3") if total[f"n{way}"] for part in ("n", "noun"))
        if noun.lower() not in _NOT_COUNTED:
            yield Statement(IT, "now numbers", f"{n.lower()} {noun}".strip())


_NOT_COUNTED = W["not_counted"]


_NOBODY = W["nobody"]
_PRONOUNS = W["pronouns"]


def _role(text: str) -> str:
    return re.sub(r"^(?:new|current|own)\s+", "", text.lower())


def _attributed(plain: str) -> re.Match[str] | None:
    match = P["attributed"].match(plain)
    if not match or re.search(r"\b(?:not|minutes?|hours?|people|times|years?)\b", match["fill"]):
        return None
    digits = any(c.isdigit() for c in match["value"])
    unit = re.match(
        r"\s*(?:minutes?|hours?|people|kids|years?|days?|weeks?|months?|km|miles|percent|%|am|pm|of|degrees)\b",
        plain[match.end() :],
        re.I,
    )
    over = re.match(
        r"\s*(?:is |was )?(?:gone|done|dead|expired|off|handed|no longer|not)\b", plain[match.end() :], re.I
    )
    return (
        match
        if digits and not unit and not over and not re.fullmatch(r"\d+(?:st|nd|rd|th)|\d+\s?°?[CF]", match["value"])
        else None
    )


def address(plain: str, talk: Talk) -> Statement | None:
    """Read where somebody lives by the house."""
    street = P["street"].match(plain)
    return Statement(f"{talk.speaker}'s address", "is", street["value"].strip(" .")) if street else None


def attributed(plain: str, talk: Talk, holder: str | None = None) -> Statement | None:
    """Read a number or a code with what it is of: "Mother's number changed, it is 040 70215"."""
    match = _attributed(plain)
    if not match:
        return None
    own = (match["own"] or "").lower()
    owner = talk.speaker if re.match(r"my|our|a\b|new", own) else holder or talk.speaker
    if own in ("his", "her"):
        owner = (talk.he if own == "his" else talk.she) or ""
    if not owner:
        return None
    value, place = match["value"].strip(" ."), P["placed"].search(match["name"])
    if place and re.fullmatch(r"\d{1,2}\w?", value):
        # "Desk 3" says more than "3", and "ground floor desk 3" more than both.
        what = re.sub(r"^.*'s\s+|^(?:new|old|current)\s+", "", match["name"])
        rest = match["name"][: match["name"].rfind("'s ") + 3] if "'s " in match["name"] else ""
        return Statement(
            _owned(f"{rest}{place[0].lower()}", owner, talk.names), "is", f"{what[0].lower()}{what[1:]} {value}"
        )
    return Statement(_owned(match["name"], owner, talk.names), "is", value)


def fragment(plain: str, holder: str, talk: Talk) -> Iterator[Statement]:
    """Read a clause that is led by a noun: "gym code 4417", "new boss: a Joris", "bins are on Tuesday".

    :param holder: whose an attribute is that names nobody: who was just spoken of, else who speaks.

    >>> from memlab.knowledge._attributes import Talk, fragment
    >>> list(fragment("my gym code is 4417", "Nora", Talk("Nora")))
    [Statement(subject="Nora's gym code", predicate='is', object='4417')]
    """
    me, names = talk.speaker, talk.names
    if whole := attributed(plain, talk, holder):
        yield whole
        return
    word = P["word_value"].match(plain)
    if word and not re.fullmatch(
        r"(?:now|the|not|same|wrong|down|reset|changed|slow|broken|gone|working|back)", word["value"], re.I
    ):
        yield Statement(_owned(word["name"], holder, names), "is", word["value"].rstrip("."))
        return
    if new := P["has_new"].match(plain):
        yield Statement(f"{me}'s {new['who']}'s {new['name']}", "is", new["value"].strip(" ."))
        return
    if job := P["new_job"].match(plain):
        if nominal(job["value"]):
            yield Statement(me, "works at", nominal(job["value"]))
        return
    if inside := P["inside"].match(plain):
        yield Statement(f"{me}'s {inside['name'].lower()}", "is", f"{inside['name'].lower()} {inside['value']}")
        return
    if size := P["size"].match(plain):
        yield Statement(f"{me}'s {size['what'] or ''} size".replace("  ", " "), "is", size["value"])
        return
    if seat := P["sits"].match(plain):
        yield Statement(f"{me}'s desk", "is", seat["value"])
        return
    if equals := P["equals"].match(plain):
        owned = f"{me}'s {_role(equals['role'])}"
        yield Statement(owned, "is", equals["who"])
        if equals["number"]:
            yield Statement(f"{owned}'s phone number", "is", equals["number"].strip())
        return
    if listed := P["listed"].match(plain) or P["tallied"].match(plain):
        groups = listed.groupdict()
        yield Statement(me, "has", groups.get("value") or f"{groups['n']} {groups['noun'].lower()}")
        return
    if soon := P["as_of_work"].match(plain):
        if nominal(soon["value"] or soon["other"]):
            yield Statement(me, "starts at", nominal(soon["value"] or soon["other"]))
        return
    if left := P["left_work"].match(plain):
        yield Statement(me, "has left", left["value"])
        return
    if due := P["goes_out"].match(plain):
        yield Statement(_thing(due["name"]), "is due on", due["value"])
        return
    if firm := P["provider"].match(plain):
        yield Statement(f"{me}'s {firm['name'].lower()}", "is", f"with {firm['value']}")
        return
    if none := P["no_for_me"].match(plain):
        yield Statement(me, "does not eat", none["what"].lower())
        return
    if secret := P["password"].match(plain):
        yield Statement(f"{me}'s {secret['name'].lower()}", "is", secret["value"])
        return
    if called := P["changed_phones"].match(plain):
        yield Statement(f"{called['who'].removesuffix(chr(39) + 's')}'s phone number", "is", called["value"].strip())
        return
    if dropped := P["dropped"].match(plain):
        yield Statement(IT, "is off", dropped["what"])
        return
    if last := P["last_day"].match(plain):
        yield Statement(me, "no longer works at", last["value"].strip())
        return
    if (kept := P["kept_at"].match(plain)) and trimmed(kept["value"]):
        whose = (kept["whose"] or "").strip().removesuffix("'s")
        holder = (
            me if not whose else f"{me}'s {whose.lower()}" if whose.lower() in KIN else names.get(whose.lower(), whose)
        )
        yield Statement(f"{holder}'s {kept['name'].lower()}", "is", trimmed(kept["value"]))
        return
    if (none := P["none_left"].match(plain)) and none["what"].lower() in W["estate"] | W["vehicles"] | PETS:
        yield Statement(me, "no longer has", f"the {none['what']}")
        return
    if stolen := P["stolen"].match(plain):
        yield Statement(me, "no longer has", f"the {stolen['what']}")
        return
    if moved := P["moved_it"].match(plain):
        yield Statement(_thing(moved["name"]), "moved to", trimmed(moved["value"]))
        return
    if home := P["home_is"].match(plain):
        yield Statement(me, "lives in", home["value"] or home["keys"])
        return
    if over := P["took_over"].match(plain):
        yield Statement(f"{me}'s {_role(over['role'])}", "is", over["who"])
        return
    if name := P["call_me"].match(plain):
        yield Statement(me, "is also called", name["value"])
        return
    if (own := P["own_is"].match(plain)) and own["name"].lower().split()[-1] not in _NOTED:
        yield Statement(f"{me}'s {own['name'].lower()}", "is", own["value"].strip(" ."))
        return
    if parted := P["they_parted"].match(plain):
        yield Statement(parted["a"], "broke up with", parted["b"])
        return
    if role := P["made_me"].search(plain):
        yield Statement(me, "works as", role["value"])
        return
    if reach := P["reach"].search(plain):
        yield Statement(f"{me}'s phone number", "is", reach["value"].strip())
        return
    if role := P["has_role"].match(plain):
        who = re.sub(r"^(?:Now|A|An|The)\s", "", role["who"])
        if who.lower() not in _PRONOUNS:
            yield Statement(f"{me}'s {_role(role['role'])}", "is", names.get(who.lower(), who))
            return
    if (role := P["is_role"].match(plain)) and role["who"].lower() not in _PRONOUNS:
        yield Statement(f"{me}'s {_role(role['role'])}", "is", role["who"])
        return
    if favourite := P["favourite"].match(plain) or P["born"].match(plain):
        if value := nominal(favourite["value"]):
            yield Statement(f"{me}'s {favourite['name'].lower()}", "is", value)
        return
    if day := P["scheduled"].match(plain):
        once = re.search(r"\b(?:today|tomorrow|tonight|this)\b", plain[day.end() :], re.I)
        if not once and not P["once_only"].search(day["name"].lower()):
            verb = re.match(r"\s*(runs?|starts?|opens?|closes?|meets?)", day["verb"], re.I)
            stem = verb[1].lower().rstrip("s") + "s" if verb else "is"
            place = "at" if re.match(r"\d[\d:.]*(?: ?[ap]m)?$|noon|midnight|half", day["value"], re.I) else "on"
            stem = "are" if stem == "is" and re.search(r"[^s]s$", day["name"]) else stem
            moved = re.match(r"\s*(?:has |got |was )?mov", day["verb"], re.I)
            yield Statement(
                _thing(day["name"]), "moved to" if moved else f"{stem} {place}", re.sub(r"^on ", "", day["value"])
            )
            return
    if (day := P["have_on"].match(plain)) and P["pursuit"].match(day["name"]):
        kin = (day["who"] or "i").split()
        owner = me if kin[0].lower() in ("i", "we") else kin[2] if len(kin) > 2 else f"{me}'s {kin[1].lower()}"
        yield Statement(owner, "has", f"{day['name']} on {day['value']}")
        return
    if (day := P["day_first"].match(plain)) and nominal(day["name"]):
        yield Statement(me, "has", f"{nominal(day['name'])} on {day['value']}")
        return
    if first := P["at_work"].match(plain):
        value = re.sub(r"\s+(?:done|survived|over|tomorrow|today)\b.*$", "", first["value"] or first["again"])
        if nominal(value):
            yield Statement(me, "works at", nominal(value))
            talk.wanted = None if re.search(r"[A-Z]", nominal(value)) else (me, "works at")
        return
    if several := P["running"].match(plain):
        yield Statement(me, "has", several["value"])
        return
    if pets := P["with_pets"].match(plain):
        yield Statement(me, "has", pets["value"])
        return
    if box := P["address"].match(plain):
        yield Statement(f"{_thing(box['name'])}'s address", "is", box["value"])
        return
    if home_found := P["new_place"].search(plain):
        where = re.search(
            r"(?:\b(?:in|near|by|at|on)\s+|,\s*|!+\s*)(?P<value>(?:the )?[A-ZÀ-Þa-z][\w-]+(?: [\w-]+){0,2})",
            home_found["rest"],
        )
        if not home_found["rest"].strip(" !.,"):
            talk.wanted = (me, "plans to live in")
        finder = plain[: home_found.start()].split()
        who = finder[0].lower() if finder else "i"
        owner = talk.she if who == "she" else talk.he if who == "he" else names.get(who) if who in names else me
        if where and owner and proper(where["value"]) and nominal(where["value"]) and who not in ("they", "you", "it"):
            yield Statement(owner, "plans to live in" if owner == me else "lives in", nominal(where["value"]))
        return
    if here := P["in_now"].match(plain):
        if (
            re.search(r"\bnow\b|\bstill\b|^\s*$|^[,.!]", plain[here.end("value") :])
            or "still" in plain
            or "now" in plain
        ):
            yield Statement(me, "lives in", here["value"])
        return
    if (off := P["off"].match(plain)) and not re.match(
        r"(?:i|we|he|she|they|it|day|time|you|that|this|my|power|alarm|light|lights)\b", off["what"], re.I
    ):
        yield Statement(IT, "is off", off["what"])
        return
    if died := P["died"].match(plain):
        yield Statement(
            IT,
            "is off",
            re.sub(
                r"^(?:my|our|the|trip to|trip|flight to|to) |^trip to ",
                "",
                (died["what"] or died["down"] or died["called"]).strip(),
            ),
        )
        return
    if home := P["a_home"].match(plain):
        if nominal(home["value"]):
            yield Statement(holder, "lives in", nominal(home["value"]))
        return
    if again := P["moved_again"].match(plain):
        who = again["who"].split("'")[0]
        yield Statement(
            me
            if who.lower() in ("i", "we")
            else who.capitalize()
            if who.lower().startswith("gran")
            else names.get(who.lower(), who),
            "lives in",
            again["value"],
        )
        return
    if (off := P["not_coming"].match(plain)) and off["what"].lower() not in _PRONOUNS:
        yield Statement(IT, "is off", names.get(off["what"].lower(), off["what"]))
        return
    if off := P["not_doing"].match(plain):
        yield Statement(IT, "is off", off["what"])
        return
    if (
        (given := P["given_up"].search(plain))
        and nominal(given["what"])
        and not re.match(r"(?:on|at|in|by|for|to|the|my|with|trying|working|being|me|it)\b", given["what"], re.I)
    ):
        giver = given["who"]
        owner = me if not giver or giver.lower() in ("i", "we") else names.get(giver.lower(), giver)
        verbs = {
            "eating": "eats",
            "drinking": "drinks",
            "smoking": "smokes",
            "using": "uses",
            "playing": "plays",
            "taking": "takes",
        }
        what = nominal(given["what"])
        said = verbs.get((given["verb"] or "").lower())
        if not said and what.lower() in ("coffee", "alcohol", "beer", "wine", "soda", "tea", "drinking"):
            said = "drinks"
        if what.lower().startswith(("smok", "drink")):
            said, what = ("smokes", "cigarettes") if what.lower().startswith("smok") else ("drinks", "alcohol")
        yield Statement(owner, f"no longer {said}" if said else "gave up", what)
        return
    if (left := P["left_town"].match(plain)) and left["who"].lower() not in ("he", "she") and nominal(left["what"]):
        owner = me if left["who"].lower() in ("i", "we") else names.get(left["who"].lower(), left["who"])
        if left["what"][:1].isupper() or left["what"] in ("the company", "the job", "school", "uni", "college"):
            yield Statement(owner, "has left", nominal(left["what"]))


def value_of(name: str, answer: str) -> str | None:
    """Give the number, code or word that answers what an attribute is."""
    if P["attribute"].search(name):
        code = P["valued"].match(answer)
        if code:
            return code["value"]
        word = re.match(r"^(?:it's |it is )?(?P<value>[\w.-]*\d[\w.-]*)", answer)
        return word["value"] if word else None
    return None


def _owned(name: str, holder: str, names: Mapping[str, str]) -> str:
    """Say whose an attribute is, with "code for the door" as "door code"; another's where a name stands before it."""
    name = re.sub(r"^(.+?)\s+(?:for|to|of|on|at)\s+(?:the\s+|my\s+|our\s+)?(.+)$", _turned, name.strip(), flags=re.I)
    name = re.sub(r"^(?:new|old|current|actual)\s+", "", name, flags=re.I)
    words = name.split()
    first = words[0].removesuffix("'s")
    if (
        words[0].endswith("'s")
        and len(words) > 1
        and (first.lower() in names or first[:1].isupper() or first.lower() in PERSONS)
    ):
        rest = " ".join(words[1:])
        kin = first.lower() in PERSONS or first.lower() in ("gran", "nan", "grandad", "granny")
        own = (
            first.capitalize()
            if first.lower() in ("gran", "nan", "grandad", "grandma", "grandpa", "granny")
            else f"{holder}'s {first.lower()}"
        )
        who = own if kin else names.get(first.lower(), first)
        return f"{who}'s {_numbered(rest)}"
    lowered = re.sub(
        r"\b(?:[A-Z][a-z]+)\b(?=\s|$)", lambda m: m[0].lower() if P["attribute"].fullmatch(m[0]) else m[0], name
    )
    return f"{holder}'s {_numbered(lowered)}"


def _turned(match: re.Match[str]) -> str:
    return match[1] if match[2].lower() in ("me", "us", "now", "today", "work") else f"{match[2]} {match[1]}"


def _numbered(name: str) -> str:
    return "phone number" if name.lower() == "number" else name


def _thing(name: str) -> str:
    return re.sub(r"^(?:the|my|our)\s+", "", name.strip(), flags=re.I).lower()
