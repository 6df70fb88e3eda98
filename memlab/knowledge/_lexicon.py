"""The verbs and other words that the rules of extraction know, and their forms."""

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

    >>> from memlab.knowledge._lexicon import forms
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

    >>> from memlab.knowledge._lexicon import third
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


def words(text: str) -> frozenset[str]:
    """Give the words of a text."""
    return frozenset(text.split())


ADVERBS = words("""
just also really recently finally always usually often still now currently already actually even never only sometimes
mostly mainly regularly typically truly totally absolutely definitely honestly lately once twice first originally
originally previously initially suddenly normally generally especially particularly both all literally pretty much
officially
""")  # fmt: skip
# After these words a verb group says what may be, not what is.
HEDGES = words("""
would could might may should maybe perhaps probably possibly almost nearly wish wished if unless supposed pretend
pretended kidding joking imagine suppose whether hypothetically 'd dreamed dreamt shall ought must seem seems
""")  # fmt: skip
PREPOSITIONS = words("""
at in to for with about of from into as on by up out off over through back around against together under along across
down away near after during within between
""")  # fmt: skip
# What a fact cannot be about: the words point elsewhere.
POINTERS = words("""
it that this these those them him her he she they there here so such what how when where why who which whatever one
his their its someone's ones something anything everything nothing any more much less me myself you your yours yourself
us someone everyone anyone somebody everybody people things stuff thing way bit again too either well better best fun
it's that's there's what's y'all none enough very than then same super though however
""")  # fmt: skip
QUANTIFIERS = words("some all another both each few lots tons plenty most one several many various different")
# Words in -ing and -ed after "I am" and "I" that open small talk, thoughts and reports rather than statements.
TALKING = words("""
kidding joking saying talking thinking hoping wondering feeling doing being sending asking telling getting looking
going wishing guessing loving assuming suggesting dying seeing hearing wanting needing agreeing coming referring
mentioning curious begging missing interesting something nothing anything everything rooting cheering waiting
needed tried wished hoped wondered seemed looked asked agreed guessed happened mentioned noticed realized realised
figured appreciated missed assumed ended used wanted supposed suggested expected doubted laughed cried loved liked
admired stayed stated replied continued thanked promised suspected imagined indeed feared interested excited tired
supposed shocked amazed felt received listed failed called managed
""")  # fmt: skip
STATES = words("""
married single divorced engaged vegan vegetarian pescatarian retired unemployed pregnant widowed left-handed
right-handed bilingual diabetic asthmatic colorblind colour-blind deaf blind jewish muslim christian catholic hindu
buddhist atheist gay lesbian bisexual transgender trans lactose-intolerant gluten-free self-employed
american british canadian australian german french italian spanish indian chinese japanese korean mexican brazilian
irish scottish dutch swedish norwegian danish polish russian ukrainian greek turkish portuguese
""")  # fmt: skip
ADJECTIVES = {
    "allergic": words("to"), "married": words("to"), "engaged": words("to"), "related": words("to"),
    "interested": words("in"), "involved": words("in"), "passionate": words("about"), "afraid": words("of"),
    "scared": words("of"), "terrified": words("of"), "fond": words("of"), "proud": words("of"), "good": words("at"),
    "bad": words("at"), "great": words("at"), "terrible": words("at"), "keen": words("on"), "obsessed": words("with"),
    "excited": words("about for"), "nervous": words("about"), "worried": words("about"), "fluent": words("in"),
    "intolerant": words("to"), "addicted": words("to"), "diagnosed": words("with"), "committed": words("to"),
    "born": words("in on"), "based": words("in"), "employed": words("by at"), "enrolled": words("in at"),
    "dedicated": words("to"), "responsible": words("for"), "thrilled": words("about"), "grateful": words("for"),
    "thankful": words("for"), "into": words(""), "from": words(""), "drawn": words("to"), "inspired": words("by"),
    "blessed": words("with"), "raised": words("in"), "hooked": words("on"), "sick": words("of"), "tired": words("of"),
    "named": words(""), "called": words(""), "friends": words("with"), "familiar": words("with"), "busy": words("with"),
    "close": words("to"), "part": words("of"), "determined": words("to"), "lucky": words("to"),
}  # fmt: skip
# "I want to say": talk about the talk.
WORDLESS = words("""
say thank tell know hear see share show ask be do make give let know mention check take get keep talk catch look think
have pass remind point stay need congratulate miss hang chat
""")  # fmt: skip
# "I have time", "a great day": chat, not memory.
LIGHT = words("""
time fun blast idea ideas clue doubt doubts feeling feelings question questions news moment chance faith hope hopes
thought thoughts point look minute minutes problem word words say energy plan plans update day week weekend night
evening morning stuff thing things couple lot bit choice luck trouble reason reasons issue mood right way access
vibe vibes laugh laughs break rest mind step steps try call chat talk care place part times success impact difference
sense progress mistake mistakes effort surprise pleasure opportunity chances tips advice month year summer
control connection similar same
""")  # fmt: skip
PERSONS = words("""
sister brother mother father mom mum dad wife husband son daughter girlfriend boyfriend partner fiance fiancé fiancée
fiancee aunt uncle cousin niece nephew grandmother grandfather grandma grandpa grandson granddaughter friend
colleague coworker co-worker boss manager neighbor neighbour roommate flatmate housemate teacher coach mentor
therapist doctor dentist landlord student teammate bandmate stepmother stepfather stepson stepdaughter stepbrother
stepsister sibling twin ex mother-in-law father-in-law sister-in-law brother-in-law godson goddaughter assistant
lawyer supervisor professor tutor trainer barber hairdresser
""")  # fmt: skip
PLURAL_PERSONS = words("""
parents kids children sons daughters sisters brothers friends cousins grandparents colleagues coworkers neighbors
neighbours roommates siblings twins students family fam grandkids grandchildren nieces nephews teammates in-laws
relatives uncles aunts
""")  # fmt: skip
PETS = words("""
dog cat puppy kitten hamster rabbit bunny parrot horse pony turtle tortoise goldfish fish bird snake lizard gecko
guinea pet pup ferret pig pets dogs cats puppies kittens
""")  # fmt: skip
MONTHS = words("january february march april may june july august september october november december")
WEEKDAYS = words("monday tuesday wednesday thursday friday saturday sunday")
