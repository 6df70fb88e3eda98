"""The words of the simulated facts: two vocabularies that share no wording, unknown to the resolver."""

from __future__ import annotations

from typing import NamedTuple


class Relation(NamedTuple):
    """A relation: its wordings, and its values, each a list of wordings, or the name of a kind of value to draw.

    ``trap`` names what a resolver may fall for.
    """

    name: str
    one: bool
    trap: str
    wordings: tuple[str, ...]
    values: list[list[str]] | str


def _values(text: str) -> list[list[str]]:
    return [[wording.strip() for wording in value.split("=")] for value in text.split("|")]


DEVELOPMENT = [
    Relation("employer", True, "paraphrase", ("works at", "is employed by", "has a job at"), _values(
        "Veltrix=Veltrix Inc|Orbana Labs|Kestrel Foods|Dunmore Bank|Hallow & Finch|Pinegate School|"
        "Lumio=Lumio GmbH|Tarn Shipping")),
    Relation("home", True, "names", ("lives in", "resides in", "has a home in"), _values(
        "Paris|Leeds|Oslo|Porto|Graz|Turku|New York City=NYC|Ghent")),
    Relation("car", True, "near values", ("drives", "is driving"), _values(
        "a Toyota Corolla|a Toyota Camry|a Honda Civic|a Honda Accord|a Ford Fiesta|a Ford Focus")),
    Relation("partner", True, "names", ("is married to", "is the spouse of"), _values(
        "Anna Keller|Anna Kelly|Paris Hall|Tom Weaver|Tom Weber|Ines Duarte")),
    Relation("phone", True, "numbers", ("phone number is", "telephone number is"), "phone"),
    Relation("key", True, "keys", ("API key is", "secret API key is"), "key"),
    Relation("rent", True, "numbers", ("monthly rent is", "pays a monthly rent of"), "amount"),
    Relation("job", True, "paraphrase", ("works as", "job is"), _values(
        "a software engineer=a software developer|a nurse|a school teacher=a teacher|"
        "a mechanical engineer|a baker|a tax adviser=a tax advisor")),
    Relation("exam", True, "dates", ("driving test is on", "has a driving test on"), "date"),
    Relation("hobby", False, "paraphrase", ("enjoys", "likes doing", "has the hobby of"), _values(
        "rock climbing=climbing rocks|playing the guitar=guitar playing|swimming=going swimming|chess|"
        "rock collecting|baking bread=bread baking|running|sailing|pottery|bird watching=watching birds")),
    Relation("language", False, "near values", ("speaks", "can speak"), _values(
        "Spanish|Portuguese|Swedish|Norwegian|Danish|Dutch|Afrikaans|Catalan")),
    Relation("visited", False, "names", ("has visited", "has travelled to"), _values(
        "Paris|Rome|Oslo|Lisbon|New York City=NYC|Porto|Vienna|Turku")),
    Relation("friend", False, "names", ("is friends with", "is a friend of"), _values(
        "Paris Hall|Anna Keller|Anna Kelly|Sam Ortega|Sam Ortiz|Lena Fuchs|Jo Park")),
    Relation("pet", False, "near values", ("has a pet named", "owns a pet called"), _values(
        "Max|Maxie|Luna|Lulu|Biscuit|Rex|Rexy|Olive")),
    Relation("allergy", False, "near values", ("is allergic to", "has an allergy to"), _values(
        "peanuts=peanut|walnuts|cats|dogs|grass pollen|birch pollen|red wine|white wine")),
    Relation("ticket", False, "numbers", ("has a ticket for seat", "booked seat"), "seat"),
]  # fmt: skip

HELD_OUT = [
    Relation("school", True, "paraphrase", ("studies at", "is a student at", "is enrolled at"), _values(
        "Brackwell College=the Brackwell College|Ostrava Polytechnic|Linden Academy|Marsh University|"
        "St. Ulric|Corvin Institute")),
    Relation("town", True, "names", ("is based in", "has an apartment in"), _values(
        "Florence|Bergen|Split|Cork|Lyon|Basel|San Francisco=SF|Malmo")),
    Relation("bike", True, "near values", ("rides", "is riding"), _values(
        "a Yamaha Tracer|a Yamaha Tenere|a Trek Domane|a Trek Emonda|a Vespa Primavera|a Vespa Sprint")),
    Relation("doctor", True, "names", ("is treated by", "is a patient of"), _values(
        "Dr. Eva Lind|Dr. Eva Lindt|Florence Moor|Dr. Karl Brandt|Dr. Karl Brand|Dr. Noor Haddad")),
    Relation("pin", True, "keys", ("wifi password is", "wi-fi password is"), "key"),
    Relation("account", True, "numbers", ("bank account number is", "number of the bank account is"), "phone"),
    Relation("salary", True, "numbers", ("yearly salary is", "earns a yearly salary of"), "amount"),
    Relation("deadline", True, "dates", ("thesis is due on", "has a thesis due on"), "date"),
    Relation("role", True, "paraphrase", ("has the position of", "holds the position of"), _values(
        "head chef=the head chef|sous chef|shift manager|store manager|film editor=editor of films|sound editor")),
    Relation("sport", False, "paraphrase", ("trains in", "practises", "takes lessons in"), _values(
        "judo|figure skating=skating figures|ice hockey=hockey on ice|table tennis|tennis|"
        "playing the violin=violin playing|rowing|archery|water polo")),
    Relation("instrument", False, "near values", ("plays", "can play"), _values(
        "the violin|the viola|the cello|the clarinet|the oboe|the trumpet|the trombone")),
    Relation("author", False, "names", ("has read books by", "has finished a book by"), _values(
        "Florence Moor|Karl Brandt|Karl Brand|Mira Sato|Mira Santos|Ola Berg|Pia Holm")),
    Relation("colleague", False, "names", ("is a colleague of", "is a coworker of"), _values(
        "Eva Lind|Eva Lindt|Florence Moor|Ben Adeyemi|Ben Adler|Yuki Mori")),
    Relation("shares", False, "near values", ("owns shares of", "holds stock in"), _values(
        "Nordwind Energy|Nordwind Logistics|Alba Foods|Alba Textiles|Quay Media|Sable Mining")),
    Relation("food", False, "near values", ("cannot eat", "is intolerant to"), _values(
        "shrimps=shrimp|lobster|almonds|hazelnuts|goat cheese|cow milk|black pepper|white pepper")),
    Relation("locker", False, "numbers", ("rents locker", "has rented locker"), "seat"),
]  # fmt: skip

VOCABULARIES = {"development": DEVELOPMENT, "held_out": HELD_OUT}
PEOPLE = {
    "development": [
        "Caroline Hart",
        "Paris Hall",
        "Anna Keller",
        "Anna Kelly",
        "my sister",
        "my neighbour",
        "Tom Weaver",
        "Tom Weber",
    ],
    "held_out": [
        "Marta Quist",
        "Florence Moor",
        "Karl Brandt",
        "Karl Brand",
        "my brother",
        "my landlord",
        "Mira Sato",
        "Mira Santos",
    ],
}
