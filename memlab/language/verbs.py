"""Common verbs and their forms."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

# Base, past, participle, -ing form; what lasts ("I live in Oslo") and may so be said in the present.
_STATES = """
work live love like enjoy hate prefer adore own play teach:taught:taught study volunteer
drive:drove:driven:driving use:used:used:using speak:spoke:spoken collect run:ran:run:running coach train cook bake
paint write:wrote:written:writing read:read:read eat:ate:eaten drink:drank:drunk practice practise attend manage
lead:led:led serve smoke suffer belong specialize specialise commute garden knit:knitted:knitted:knitting
sing:sang:sung dance swim:swam:swum:swimming hike climb surf ski:skied:skied:skiing ride:rode:ridden:riding rent
earn cherish value subscribe draw:drew:drawn sew:sewed:sewn weave:wove:woven jog:jogged:jogged:jogging meditate
dislike detest breed:bred:bred grow:grew:grown follow watch support believe:believed:believed:believing miss
treasure sponsor weigh fear
"""

# What happened, and so is a fact only in the past or the perfect ("I bought a car").
_EVENTS = """
move go:went:gone visit travel:traveled:traveled travelled buy:bought:bought sell:sold:sold get:got:gotten:getting
adopt lose:lost:lost find:found:found start finish join leave:left:left quit:quit:quit:quitting switch change graduate
marry divorce meet:met:met break:broke:broken hurt:hurt:hurt injure win:won:won:winning receive sign enroll enrol
apply pass fail take:took:taken make:made:made build:built:built create design publish record perform host organize
organise donate open launch close hire retire begin:began:begun:beginning plant learn complete celebrate see:saw:seen
discover book reserve order return come:came:come catch:caught:caught help rescue set:set:set:setting participate
compete talk share post submit enter interview land accept pick choose:chose:chosen cancel upgrade replace repair fix
renovate crash total:totalled:totalled spend:spent:spent pay:paid:paid save invest borrow lend:lent:lent give:gave:given
explore try adapt attach install register stop:stopped:stopped:stopping camp raise co-found deliver develop earn
establish experience fall:fell:fallen bring:brought:brought welcome inherit injure recover decorate redecorate
swap:swapped:swapped:swapping
check drop:dropped:dropped:dropping bike invite hang:hung:hung print score sprain teach wrap:wrapped:wrapped:wrapping
have:had:had:having tour sell pitch present propose audition study fly:flew:flown sail cross stay turn
celebrate volunteer contribute fundraise reach achieve earn expand hold:held:held throw:threw:thrown tear:tore:torn
reunite reconnect bond network collaborate partner film shoot:shot:shot edit compose release sketch carve craft
assemble restore nominate major relocate transfer settle migrate arrive know:knew:known
"""


class Form(NamedTuple):
    """A verb form: its base, its tense (``present``, ``past``, ``participle``, ``ing``), whether it lasts."""

    base: str
    tense: frozenset[str]
    state: bool


@cache
def forms() -> dict[str, Form]:
    """Give every form of the known verbs.

    >>> from memlab.language.verbs import forms
    >>> forms()["bought"].base, sorted(forms()["bought"].tense), forms()["teaches"].state
    ('buy', ['participle', 'past'], True)
    """
    table: dict[str, Form] = {}
    states = {entry.split(":")[0] for entry in _STATES.split()}
    for entry in (*_STATES.split(), *_EVENTS.split()):
        base, *irregular = entry.split(":")
        past = irregular[0] if irregular else _past(base)
        participle = irregular[1] if len(irregular) > 1 else past
        ing = irregular[2] if len(irregular) > 2 else (base[:-1] if base.endswith("e") else base) + "ing"
        said = {base: "present", third(base): "third", past: "past", participle: "participle", ing: "ing"}
        for word in said:
            tenses = {tense for form, tense in ((base, "present"), (third(base), "third"), (past, "past"),
                                                (participle, "participle"), (ing, "ing")) if form == word}  # fmt: skip
            held = table.get(word)
            # "read" is present and past; "found" belongs to "find".
            if held is None or held.base == base:
                table[word] = Form(base, frozenset(tenses), base in states)
    return table


def third(base: str) -> str:
    """Put a verb into the third person.

    >>> from memlab.language.verbs import third
    >>> third("teach"), third("study"), third("play"), third("have")
    ('teaches', 'studies', 'plays', 'has')
    """
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")


def _past(base: str) -> str:
    if base.endswith("y") and base[-2:-1] not in "aeiou":
        return base[:-1] + "ied"
    return base + ("d" if base.endswith("e") else "ed")
