"""The bilingual lexicon behind :mod:`nmt.data.sample`: what a dictionary knows, and nothing about syntax.

Every entry pairs one English word with one German word, so that a translation never has to choose. The tables are
written the way a learner's dictionary prints them and are parsed once, on import:

* nouns    ``"boy boys w Junge Jungen"``: English singular and plural, gender (``m f n``, or ``w`` for a masculine noun
  of the weak declension), German singular and plural; ``-`` stands for "has no plural";
* verbs    ``"turn+on turns turned", "ein+schalten schaltet hat geschaltet"``: the principal parts, with ``+`` behind
  a particle, which the other forms do not repeat, and the auxiliary of the perfect before the participle;
* phrases  ``"in/a the/b evening/c = am/ab Abend/c"``: the letters after the slash say which words translate each other.
"""

from functools import cache
from typing import Literal, NamedTuple

Case = Literal["nom", "acc", "dat"]
Agreement = Literal["sg1", "sg3", "pl"]
CASES: tuple[Case, ...] = ("nom", "acc", "dat")

# ---------------------------------------------------------------------------------------------------------- endings

COLUMNS = "mfnp"  # masculine, feminine, neuter, plural: the columns of the tables below


def _table(nom: str, acc: str, dat: str) -> dict[tuple[Case, str], str]:
    """Read three rows of four endings; ``-`` is the empty ending."""
    rows: dict[Case, str] = {"nom": nom, "acc": acc, "dat": dat}
    return {
        (case, column): ending.strip("-")
        for case, row in rows.items()
        for column, ending in zip(COLUMNS, row.split(), strict=True)
    }


DEFINITE = _table("er ie as ie", "en ie as ie", "em er em en")  # d-: der, die, das
DER_WORD = _table("er e es e", "en e es e", "em er em en")  # dies-
EIN_WORD = _table("- e - e", "en e - e", "em er em en")  # ein, kein, mein
WEAK = _table("e e e en", "en e e en", "en en en en")  # der alte Mann
MIXED = _table("er e es en", "en e es en", "en en en en")  # ein alter Mann
STRONG = _table("er e es e", "en e es e", "em er em en")  # alter Wein
Endings = dict[tuple[Case, str], str]


class Determiner(NamedTuple):
    """An article-like word: its German stem, the endings that it takes and those that it leaves to adjectives."""

    english: str
    plural: str
    stem: str
    own: Endings
    adjective: Endings


THE = Determiner("the", "the", "d", DEFINITE, WEAK)
THIS = Determiner("this", "these", "dies", DER_WORD, WEAK)
A = Determiner("a", "", "ein", EIN_WORD, MIXED)
NO = Determiner("", "", "kein", EIN_WORD, MIXED)
POSSESSIVES = tuple(
    Determiner(english, english, stem, EIN_WORD, MIXED)
    for english, stem in (("my", "mein"), ("his", "sein"), ("her", "ihr"), ("our", "unser"), ("their", "ihr"))
)


# --------------------------------------------------------------------------------------------------- pronouns, modals


class Pronoun(NamedTuple):
    """A personal pronoun with its cases; English has one object form for both German ones."""

    subject: str
    object: str
    nom: str
    acc: str
    dat: str
    agreement: Agreement


PRONOUNS = {
    pronoun.subject: pronoun
    for pronoun in (
        Pronoun("I", "me", "ich", "mich", "mir", "sg1"),
        Pronoun("he", "him", "er", "ihn", "ihm", "sg3"),
        Pronoun("she", "her", "sie", "sie", "ihr", "sg3"),
        Pronoun("we", "us", "wir", "uns", "uns", "pl"),
        Pronoun("they", "them", "sie", "sie", "ihnen", "pl"),
    )
}


class Modal(NamedTuple):
    """A modal verb: ``can`` -> ``kann``, ``können``; only ``want`` inflects in English and takes *to*."""

    english: str
    singular: str
    plural: str
    negatable: bool


MODALS = (
    Modal("can", "kann", "können", True),
    Modal("must", "muss", "müssen", False),
    Modal("should", "soll", "sollen", True),
    Modal("want", "will", "wollen", True),
)

# ------------------------------------------------------------------------------------------------------------- nouns


class Noun(NamedTuple):
    """A noun; an English noun of several words (``kitchen table``) is one German compound (``Küchentisch``)."""

    english: str
    english_plural: str
    gender: str
    german: str
    german_plural: str
    weak: bool
    group: str

    def inflect(self, case: Case, plural: bool) -> str:
        """Return the German form: dative plurals end in *-n* or *-s*, weak nouns in *-n* outside the nominative."""
        if plural:
            needs_n = case == "dat" and self.german_plural[-1] not in "ns"
            return self.german_plural + "n" * needs_n
        return self.german_plural if self.weak and case != "nom" else self.german


_NOUNS = {
    "name": "Anna - f Anna -, Lisa - f Lisa -, Maria - f Maria -, Peter - m Peter -, Max - m Max -, Paul - m Paul -",
    "place": "Berlin - n Berlin -, Hamburg - n Hamburg -, Munich - n München -, Vienna - n Wien -, Cologne - n Köln -",
    "person": """man men m Mann Männer, woman women f Frau Frauen, child children n Kind Kinder,
        boy boys w Junge Jungen, girl girls n Mädchen Mädchen, teacher teachers m Lehrer Lehrer,
        doctor doctors m Arzt Ärzte, student students w Student Studenten, neighbour neighbours w Nachbar Nachbarn,
        baker bakers m Bäcker Bäcker, gardener gardeners m Gärtner Gärtner, guest guests m Gast Gäste""",
    "family": """mother - f Mutter -, father - m Vater -, brother brothers m Bruder Brüder,
        sister sisters f Schwester Schwestern, uncle uncles m Onkel Onkel, aunt aunts f Tante Tanten,
        grandmother - f Großmutter -, grandfather - m Großvater -, friend friends m Freund Freunde""",
    "animal": """dog dogs m Hund Hunde, cat cats f Katze Katzen, horse horses n Pferd Pferde,
        bird birds m Vogel Vögel, mouse mice f Maus Mäuse, cow cows f Kuh Kühe, pig pigs n Schwein Schweine""",
    "food": """apple apples m Apfel Äpfel, egg eggs n Ei Eier, orange oranges f Orange Orangen,
        tomato tomatoes f Tomate Tomaten, potato potatoes f Kartoffel Kartoffeln, sausage sausages f Wurst Würste,
        cake cakes m Kuchen Kuchen""",
    "dish": "soup soups f Suppe Suppen, salad salads m Salat Salate",
    "staple": """bread - n Brot -, cheese - m Käse -, meat - n Fleisch -, chocolate - f Schokolade -,
        rice - m Reis -, butter - f Butter -""",
    "drink": """water - n Wasser -, milk - f Milch -, coffee - m Kaffee -, tea - m Tee -, wine - m Wein -,
        beer - n Bier -, juice - m Saft -""",
    "reading": """book books n Buch Bücher, newspaper newspapers f Zeitung Zeitungen, letter letters m Brief Briefe,
        story stories f Geschichte Geschichten, novel novels m Roman Romane""",
    "clothes": """coat coats m Mantel Mäntel, dress dresses n Kleid Kleider, shirt shirts n Hemd Hemden,
        hat hats m Hut Hüte, jacket jackets f Jacke Jacken, skirt skirts m Rock Röcke""",
    "vehicle": """car cars n Auto Autos, bicycle bicycles n Fahrrad Fahrräder, bus buses m Bus Busse,
        train trains m Zug Züge, boat boats n Boot Boote""",
    "furniture": """table tables m Tisch Tische, chair chairs m Stuhl Stühle, bed beds n Bett Betten,
        cupboard cupboards m Schrank Schränke, shelf shelves n Regal Regale""",
    "opening": "door doors f Tür Türen, window windows n Fenster Fenster",
    "container": "bag bags f Tasche Taschen, suitcase suitcases m Koffer Koffer, box boxes f Kiste Kisten",
    "device": """lamp lamps f Lampe Lampen, radio radios n Radio Radios, computer computers m Computer Computer,
        camera cameras f Kamera Kameras, clock clocks f Uhr Uhren""",
    "thing": """key keys m Schlüssel Schlüssel, picture pictures n Bild Bilder, cup cups f Tasse Tassen,
        plate plates m Teller Teller, knife knives n Messer Messer, glass glasses n Glas Gläser,
        ball balls m Ball Bälle, bottle bottles f Flasche Flaschen, umbrella umbrellas m Regenschirm Regenschirme""",
    "gift": "gift gifts n Geschenk Geschenke, flower flowers f Blume Blumen",
    "art": "song songs n Lied Lieder, film films m Film Filme",
    "plant": "tree trees m Baum Bäume",
    "room": "kitchen kitchens f Küche Küchen, room rooms n Zimmer Zimmer, cellar cellars m Keller Keller, "
    "office offices n Büro Büros",
    "building": """house houses n Haus Häuser, school schools f Schule Schulen, museum museums n Museum Museen,
        hotel hotels n Hotel Hotels, restaurant restaurants n Restaurant Restaurants, church churches f Kirche Kirchen,
        library libraries f Bibliothek Bibliotheken, supermarket supermarkets m Supermarkt Supermärkte,
        hospital hospitals n Krankenhaus Krankenhäuser""",
    "outdoors": """garden gardens m Garten Gärten, park parks m Park Parks, forest forests m Wald Wälder,
        village villages n Dorf Dörfer, city cities f Stadt Städte""",
    "spot": """station stations m Bahnhof Bahnhöfe, beach beaches m Strand Strände, lake lakes m See Seen,
        airport airports m Flughafen Flughäfen""",
}

# The first part of a German compound, and the heads that it joins: the compound inherits all else from its head.
_COMPOUNDS = {
    "kitchen": ("Küchen", "table chair cupboard door window clock lamp knife"),
    "garden": ("Garten", "table chair door"),
    "apple": ("Apfel", "juice cake tree"),
    "orange": ("Orangen", "juice"),
    "chocolate": ("Schokoladen", "cake"),
    "tomato": ("Tomaten", "soup salad"),
    "potato": ("Kartoffel", "soup salad"),
    "school": ("Schul", "bag book bus"),
    "winter": ("Winter", "coat jacket"),
    "summer": ("Sommer", "dress hat"),
    "coffee": ("Kaffee", "cup"),
    "tea": ("Tee", "cup"),
    "wine": ("Wein", "glass bottle"),
    "house": ("Haus", "key"),
    "car": ("Auto", "key door"),
    "office": ("Büro", "chair key"),
    "city": ("Stadt", "park museum"),
    "village": ("Dorf", "church school"),
}


def _noun(entry: str, group: str) -> Noun:
    """Parse one dictionary entry, as ``"man men m Mann Männer"``."""
    english, plural, gender, german, german_plural = entry.split()
    weak = gender == "w"
    return Noun(english, plural.strip("-"), "m" if weak else gender, german, german_plural.strip("-"), weak, group)


def _compound(modifier: str, prefix: str, head: Noun) -> Noun:
    """Join a modifier to its head: ``kitchen`` + ``table`` -> ``Küchentisch``."""
    return head._replace(
        english=f"{modifier} {head.english}",
        english_plural=head.english_plural and f"{modifier} {head.english_plural}",
        german=prefix + head.german.lower(),
        german_plural=head.german_plural and prefix + head.german_plural.lower(),
    )


def _read_nouns() -> dict[str, Noun]:
    """Return every noun by its English singular, simple nouns first."""
    simple = [_noun(entry, group) for group, entries in _NOUNS.items() for entry in entries.split(",")]
    heads = {noun.english: noun for noun in simple}
    compounds = [
        _compound(modifier, prefix, heads[head])
        for modifier, (prefix, names) in _COMPOUNDS.items()
        for head in names.split()
    ]
    return heads | {noun.english: noun for noun in compounds}


NOUNS = _read_nouns()


def nouns(names: str) -> tuple[Noun, ...]:
    """Return the nouns of groups (``food``) or by head (``cake``: also ``apple cake``), each once, in order."""
    wanted = names.split()
    return tuple(noun for noun in NOUNS.values() if noun.group in wanted or noun.english.split()[-1] in wanted)


# -------------------------------------------------------------------------------------------------------- adjectives


class Adjective(NamedTuple):
    """An adjective: its English form, German predicate form (``teuer``) and the stem that takes endings (``teur-``)."""

    english: str
    german: str
    stem: str


_ADJECTIVES = """big groß, small klein, old alt, new neu, young jung, beautiful schön, red rot, blue blau, green grün,
    white weiß, black schwarz, brown braun, expensive teuer teur, cheap billig, cold kalt, warm warm, hot heiß,
    fresh frisch, good gut, delicious lecker, friendly freundlich, tired müde müd, hungry hungrig, happy glücklich,
    sad traurig, clever klug, ill krank, famous berühmt, rich reich, interesting interessant, boring langweilig,
    exciting spannend, long lang, short kurz, dirty schmutzig, clean sauber, heavy schwer, modern modern,
    quiet ruhig, dark dunkel dunkl, empty leer, full voll, broken kaputt"""

ADJECTIVES = {
    words[0]: Adjective(words[0], words[1], words[-1]) for words in (entry.split() for entry in _ADJECTIVES.split(","))
}

_ADJECTIVES_OF = {
    "person": "young old friendly tired hungry happy sad clever ill famous rich",
    "family": "old friendly tired happy sad clever ill rich",
    "animal": "big small old young hungry tired black white brown",
    "food": "big small fresh delicious cheap expensive good",
    "dish": "hot warm cold delicious good",
    "staple": "fresh delicious cheap expensive good",
    "drink": "cold warm good cheap expensive",
    "reading": "old new good interesting boring exciting long short",
    "clothes": "red blue green white black brown new old warm beautiful expensive cheap dirty clean",
    "vehicle": "new old red blue green white black expensive cheap modern dirty",
    "furniture": "new old big small white brown beautiful expensive heavy modern",
    "opening": "big small white green new old",
    "container": "heavy empty full big small black red old",
    "device": "new old modern expensive cheap broken",
    "thing": "new old beautiful small big cheap expensive",
    "gift": "beautiful expensive small big",
    "art": "old new good beautiful boring long short",
    "plant": "big small old green beautiful",
    "room": "big small cold warm dark clean dirty quiet",
    "building": "big small old new modern beautiful",
    "outdoors": "big small beautiful quiet old",
    "spot": "big small beautiful quiet",
}


@cache
def adjectives(group: str) -> tuple[Adjective, ...]:
    """Return the adjectives that go with a group of nouns."""
    return tuple(ADJECTIVES[name] for name in _ADJECTIVES_OF.get(group, "").split())


# ------------------------------------------------------------------------------------------------------ prepositions


class Preposition(NamedTuple):
    """A preposition and the case it governs; ``in`` and ``into`` are one word in German with two cases."""

    english: str
    german: str
    case: Case


PREPOSITIONS = {
    "in": Preposition("in", "in", "dat"),
    "into": Preposition("into", "in", "acc"),
    "at": Preposition("at", "an", "dat"),
    "on": Preposition("on", "auf", "dat"),
    "onto": Preposition("on", "auf", "acc"),
    "under": Preposition("under", "unter", "dat"),
    "behind": Preposition("behind", "hinter", "dat"),
    "to": Preposition("to", "zu", "dat"),
    "toward": Preposition("to", "nach", "dat"),
    "from": Preposition("from", "aus", "dat"),
    "with": Preposition("with", "mit", "dat"),
    "for": Preposition("for", "für", "acc"),
    "await": Preposition("for", "auf", "acc"),
    "without": Preposition("without", "ohne", "acc"),
}
COMPANY = "name family person"
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}

Slots = tuple[tuple[Preposition, tuple[Noun, ...]], ...]


def slots(text: str) -> Slots:
    """Read prepositions with their nouns: ``"into room; to spot person"``."""
    entries = (entry.split(maxsplit=1) for entry in text.split(";") if entry)
    return tuple((PREPOSITIONS[preposition], nouns(names)) for preposition, names in entries)


# ------------------------------------------------------------------------------------------------------------- verbs


class Verb(NamedTuple):
    """A verb with its principal parts, what it governs, and the company that it keeps."""

    base: str
    third: str
    participle: str
    english_particle: str
    infinitive: str
    finite: str
    auxiliary: str
    german_participle: str
    particle: str
    human: bool
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    case: Case
    recipient: bool
    complement: Slots
    optional: bool
    place: Slots
    manner: tuple[str, ...]
    perfect: bool

    @property
    def lemma(self) -> str:
        """The dictionary form: ``aufmachen``."""
        return self.particle + self.infinitive

    @property
    def perfect_form(self) -> str:
        """The German participle behind its particle: ``auf`` + ``gemacht``."""
        return self.particle + self.german_participle


def _verb(
    english: str,
    german: str,
    objects: str = "",
    *,
    subjects: str = "name person family",
    case: Case = "acc",
    recipient: bool = False,
    complement: str = "",
    place: str = "",
    manner: str = "",
    perfect: bool = True,
) -> Verb:
    """Parse one verb; see the head of this module for the notation."""
    base, third, participle = english.split()
    infinitive, finite, auxiliary, german_participle = german.split()
    base, _, english_particle = base.partition("+")
    particle, _, infinitive = infinitive.rpartition("+")
    optional, goal = complement.startswith("?"), slots(complement.strip("? "))
    human = "person" in subjects.split()
    return Verb(
        base, third, participle, english_particle,
        infinitive, finite, auxiliary, german_participle, particle,
        human, nouns(subjects), nouns(objects), case, recipient,
        goal, optional, slots(place), tuple(manner.split()), perfect,
    )  # fmt: skip


BE = _verb("be is been", "sein ist ist gewesen", perfect=False,
           subjects="name person family animal reading clothes dish staple drink food vehicle furniture opening "
           "container device thing gift art plant room building outdoors spot")  # fmt: skip
HAVE = _verb("have has had", "haben hat hat gehabt", "animal car bicycle boat camera computer", perfect=False)
COST = _verb("cost costs cost", "kosten kostet hat gekostet", perfect=False,
             subjects="clothes furniture device book novel car bicycle cake umbrella")  # fmt: skip

_HOME = "in room garden"
_AWAY = "in house school library park hotel office city place; at beach lake"
_SHOPS = "in supermarket village city place"
_GOODS = "food staple drink clothes car bicycle boat furniture reading device thing flower"
_PEOPLE = "name person family"
_TRAVEL = "toward place; to airport beach lake station; into city village"

VERBS: tuple[Verb, ...] = (
    # what one does alone
    _verb("sleep sleeps slept", "schlafen schläft hat geschlafen", subjects="name person family dog cat horse",
          place="in room garden hotel; under table tree"),
    _verb("work works worked", "arbeiten arbeitet hat gearbeitet",
          place="in garden office school hotel hospital museum restaurant place; at airport",
          manner="slowly quickly alone with"),
    _verb("laugh laughs laughed", "lachen lacht hat gelacht", place="in school kitchen; at beach",
          manner="loudly quietly"),
    _verb("dance dances danced", "tanzen tanzt hat getanzt", place="in park hotel kitchen restaurant; at beach",
          manner="slowly with"),
    _verb("play plays played", "spielen spielt hat gespielt", subjects="name child boy girl dog cat",
          complement="? with dog cat child", place="in garden park room; behind house tree", manner="quietly"),
    _verb("get+up gets got", "auf+stehen steht ist gestanden", manner="slowly quickly"),
    _verb("wake+up wakes woken", "auf+wachen wacht ist gewacht", subjects="name person family dog cat",
          manner="slowly"),
    _verb("fall+asleep falls fallen", "ein+schlafen schläft ist geschlafen", subjects="name person family dog cat",
          place="in room garden; under table tree", manner="quickly"),
    _verb("watch+television watches watched", "fern+sehen sieht hat gesehen", place="in kitchen room hotel",
          manner="alone with"),
    _verb("go+shopping goes gone", "ein+kaufen kauft hat gekauft", place=_SHOPS,
          manner="alone with without"),
    # going places
    _verb("go goes gone", "gehen geht ist gegangen", manner="slowly quickly with without",
          complement="into room building outdoors; to spot doctor baker family school church"),
    _verb("walk walks walked", "laufen läuft ist gelaufen", manner="slowly",
          complement="to spot school church supermarket hotel; into forest village park"),
    _verb("run runs run", "rennen rennt ist gerannt", subjects="person name dog cat horse",
          complement="into room house garden park forest; to station lake", manner="quickly"),
    _verb("travel travels travelled", "fahren fährt ist gefahren", complement=_TRAVEL,
          manner="train bus car bicycle alone with without"),
    _verb("fly flies flown", "fliegen fliegt ist geflogen", complement="toward place",
          manner="alone with without"),
    _verb("come comes come", "kommen kommt ist gekommen", complement="from place; into room house garden; to doctor"),
    _verb("arrive arrives arrived", "an+kommen kommt ist gekommen", subjects="name person family train bus",
          place="in place village; at station airport"),
    _verb("depart departs departed", "ab+fahren fährt ist gefahren", subjects="train bus boat"),
    _verb("come+back comes come", "zurück+kommen kommt ist gekommen", complement="? from place",
          manner="train bus car quickly"),
    _verb("swim swims swum", "schwimmen schwimmt ist geschwommen", subjects="name person family dog",
          complement="in lake", manner="slowly quickly"),
    # being somewhere
    _verb("live lives lived", "wohnen wohnt hat gewohnt", perfect=False,
          complement="in place city village house hotel; at lake"),
    _verb("sit sits sat", "sitzen sitzt hat gesessen", subjects="name person family dog cat bird", perfect=False,
          complement="in room garden park restaurant; on chair bed; under tree table; at window"),
    _verb("stand stands stood", "stehen steht hat gestanden", subjects="name person horse cow vehicle", perfect=False,
          complement="in garden village; behind house tree; at station"),
    _verb("lie lies lain", "liegen liegt hat gelegen", subjects="reading key picture knife umbrella", perfect=False,
          complement="on table chair bed shelf; under bed; in cupboard bag suitcase"),
    _verb("wait waits waited", "warten wartet hat gewartet", complement="? await name person family train bus",
          place="in park hotel restaurant; at station airport; behind house"),
    _verb("speak speaks spoken", "sprechen spricht hat gesprochen", complement="with name person family",
          place=_AWAY, manner="quietly loudly slowly"),
    # food and drink
    _verb("eat eats eaten", "essen isst hat gegessen", "food dish staple", place="in kitchen garden restaurant park",
          manner="slowly quickly with"),
    _verb("eat eats eaten", "fressen frisst hat gefressen", "bread meat apple cheese sausage egg",
          subjects="dog cat mouse pig", place="in garden kitchen cellar; under table", manner="slowly quickly"),
    _verb("drink drinks drunk", "trinken trinkt hat getrunken", "drink", place="in kitchen garden restaurant hotel",
          manner="slowly quickly with"),
    _verb("cook cooks cooked", "kochen kocht hat gekocht", "soup potato rice egg meat", place="in kitchen restaurant",
          complement="? for name family child guest"),
    _verb("bake bakes baked", "backen backt hat gebacken", "cake bread", place="in kitchen",
          complement="? for name family child guest"),
    # things
    _verb("read reads read", "lesen liest hat gelesen", "reading", place="in room garden park library; at beach lake",
          manner="slowly quietly"),
    _verb("write writes written", "schreiben schreibt hat geschrieben", "book letter story novel song", place=_HOME,
          manner="slowly quickly"),
    _verb("buy buys bought", "kaufen kauft hat gekauft", _GOODS, place=_SHOPS,
          complement="? for name family child guest"),
    _verb("sell sells sold", "verkaufen verkauft hat verkauft", "car bicycle boat furniture device picture flower food house",
          place="in village city place; at station"),
    _verb("need needs needed", "brauchen braucht hat gebraucht", "clothes device furniture car bicycle thing container",
          perfect=False),
    _verb("look+for looks looked", "suchen sucht hat gesucht", "animal key clothes umbrella book letter child camera",
          place="in room garden forest; under table"),
    _verb("find finds found", "finden findet hat gefunden", "animal key clothes umbrella book letter picture bag",
          place="in room garden forest; under tree bed; behind house"),
    _verb("see sees seen", "sehen sieht hat gesehen", "person family animal vehicle film picture tree",
          place="in garden park forest city; behind house; at lake"),
    _verb("hear hears heard", "hören hört hat gehört", "song dog bird child story", place="in garden room park"),
    _verb("wash washes washed", "waschen wäscht hat gewaschen", "clothes car dog", place="in kitchen cellar",
          manner="slowly carefully quickly"),
    _verb("paint paints painted", "malen malt hat gemalt", "picture flower tree horse house", place=_HOME,
          manner="slowly carefully"),
    _verb("repair repairs repaired", "reparieren repariert hat repariert", "vehicle device furniture door",
          place="in cellar garden; behind house", manner="slowly quickly carefully"),
    _verb("sing sings sung", "singen singt hat gesungen", "song", place="in church school garden",
          manner="loudly quietly"),
    _verb("open opens opened", "auf+machen macht hat gemacht", "opening container bottle letter",
          manner="slowly carefully quietly"),
    _verb("close closes closed", "zu+machen macht hat gemacht", "opening container book",
          manner="slowly carefully quietly quickly"),
    _verb("turn+on turns turned", "ein+schalten schaltet hat geschaltet", "lamp radio computer camera"),
    _verb("turn+off turns turned", "aus+schalten schaltet hat geschaltet", "lamp radio computer camera"),
    _verb("put+on puts put", "an+ziehen zieht hat gezogen", "clothes", manner="slowly quickly"),
    _verb("take+off takes taken", "aus+ziehen zieht hat gezogen", "clothes", manner="slowly quickly"),
    _verb("throw+away throws thrown", "weg+werfen wirft hat geworfen", "newspaper letter shirt box bottle food"),
    _verb("tidy+up tidies tidied", "auf+räumen räumt hat geräumt", "room", manner="quickly slowly"),
    _verb("bring+along brings brought", "mit+bringen bringt hat gebracht", "dish cake wine juice gift umbrella"),
    _verb("carry carries carried", "tragen trägt hat getragen", "container furniture bicycle",
          complement="? into room house; to station", manner="slowly carefully"),
    _verb("bring brings brought", "bringen bringt hat gebracht", "container furniture dish drink",
          complement="into room house garden"),
    _verb("put puts put", "legen legt hat gelegt", "reading key picture knife umbrella",
          complement="onto table chair bed shelf", manner="carefully quickly quietly"),
    # people
    _verb("visit visits visited", "besuchen besucht hat besucht", _PEOPLE, place="in place hospital village"),
    _verb("love loves loved", "lieben liebt hat geliebt", "name family animal child", perfect=False),
    _verb("call calls called", "an+rufen ruft hat gerufen", _PEOPLE),
    _verb("invite invites invited", "ein+laden lädt hat geladen", _PEOPLE),
    _verb("pick+up picks picked", "ab+holen holt hat geholt", _PEOPLE, place="at station airport"),
    _verb("help helps helped", "helfen hilft hat geholfen", _PEOPLE, case="dat", place="in garden kitchen office"),
    _verb("thank thanks thanked", "danken dankt hat gedankt", _PEOPLE, case="dat"),
    _verb("follow follows followed", "folgen folgt ist gefolgt", _PEOPLE, case="dat",
          complement="? into house garden park forest village", manner="slowly quickly quietly"),
    _verb("listen+to listens listened", "zu+hören hört hat gehört", _PEOPLE, case="dat"),
    _verb("give gives given", "geben gibt hat gegeben", "food flower gift book clothes key cup", recipient=True),
    _verb("show shows shown", "zeigen zeigt hat gezeigt", "reading picture clothes vehicle camera flower",
          recipient=True),
    _verb("send sends sent", "schicken schickt hat geschickt", "letter gift flower picture book key", recipient=True),
    _verb("tell tells told", "erzählen erzählt hat erzählt", "story", recipient=True),
)  # fmt: skip

REPORTING: tuple[Verb, ...] = (
    _verb("know knows known", "wissen weiß hat gewusst", perfect=False),
    _verb("say says said", "sagen sagt hat gesagt"),
    _verb("believe believes believed", "glauben glaubt hat geglaubt", perfect=False),
    _verb("hope hopes hoped", "hoffen hofft hat gehofft", perfect=False),
    _verb("see sees seen", "sehen sieht hat gesehen"),
    _verb("forget forgets forgotten", "vergessen vergisst hat vergessen"),
)

# Forms that no rule gives: everything else in the first person is the infinitive without -n, in the plural with it.
FIRST_PERSON = {"sein": "bin", "wissen": "weiß"}
PLURAL = {"sein": "sind"}
PAST = {"sein": ("war", "waren"), "haben": ("hatte", "hatten")}
ENGLISH_BE: dict[Agreement, tuple[str, str]] = {"sg1": ("am", "was"), "sg3": ("is", "was"), "pl": ("are", "were")}

# ----------------------------------------------------------------------------------------------- adverbs and phrases

MANNERS = {
    "slowly": "slowly/a = langsam/a",
    "quickly": "quickly/a = schnell/a",
    "quietly": "quietly/a = leise/a",
    "loudly": "loudly/a = laut/a",
    "carefully": "carefully/a = vorsichtig/a",
    "train": "by/a train/b = mit/a dem/b Zug/b",
    "bus": "by/a bus/b = mit/a dem/b Bus/b",
    "car": "by/a car/b = mit/a dem/b Auto/b",
    "bicycle": "by/a bicycle/b = mit/a dem/b Fahrrad/b",
    "alone": "alone/a = allein/a",
}

_WEEKDAYS = "Monday Montag, Tuesday Dienstag, Wednesday Mittwoch, Thursday Donnerstag, Friday Freitag, " \
    "Saturday Samstag, Sunday Sonntag"  # fmt: skip
ON_WEEKDAY = tuple("on/a {}/b = am/a {}/b".format(*entry.split()) for entry in _WEEKDAYS.split(", "))
TODAY = ("today/a = heute/a", "this/a morning/b = heute/a Morgen/b", "this/a evening/b = heute/a Abend/b")
THIS_WEEK = (
    "this/a week/b = diese/a Woche/b",
    "this/a year/b = dieses/a Jahr/b",
)
HABIT = (
    "every/a day/b = jeden/a Tag/b",
    "every/a morning/b = jeden/a Morgen/b",
    "every/a evening/b = jeden/a Abend/b",
    "in/a the/b morning/c = am/ab Morgen/c",
    "in/a the/b evening/c = am/ab Abend/c",
    "in/a the/b afternoon/c = am/ab Nachmittag/c",
    "in/a the/b summer/c = im/ab Sommer/c",
    "in/a the/b winter/c = im/ab Winter/c",
    "after/a breakfast/b = nach/a dem/b Frühstück/b",
    "before/a lunch/b = vor/a dem/b Mittagessen/b",
    "after/a dinner/b = nach/a dem/b Abendessen/b",
)
YESTERDAY = ("yesterday/a = gestern/a",)
TOMORROW = ("tomorrow/a = morgen/a",)
NOW = ("now/a = jetzt/a",)

WHO = "who/a = wer/a"
QUESTION_WORDS = {"place": "where/a = wo/a", "time": "when/a = wann/a", "reason": "why/a = warum/a",
                  "objects": "what/a = was/a"}  # fmt: skip
WHEREABOUTS = slots("in room building park garden village; at station beach lake airport")
DEPENDENT = ("because weil", "although obwohl", "if wenn")
REPORTED = "that dass"
COORDINATE = ("and und", "but aber")
CHANGING = ("tired", "hungry", "happy", "sad", "ill")  # the adjectives that may be true today only

FREQUENCY = ("often/a = oft/a", "always/a = immer/a", "never/a = nie/a", "sometimes/a = manchmal/a")
SO_FAR = ("often/a = oft/a", "never/a = nie/a", "already/a = schon/a")

MONTHS = dict(entry.split() for entry in (
    "January Januar, February Februar, March März, April April, May Mai, June Juni, July Juli, August August, "
    "September September, October Oktober, November November, December Dezember").split(", "))  # fmt: skip

# ------------------------------------------------------------------------------------------------------------ numbers

ENGLISH_ONES = ("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
                "seventeen eighteen nineteen").split()  # fmt: skip
GERMAN_ONES = ("ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
               "siebzehn achtzehn neunzehn").split()  # fmt: skip
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
ENGLISH_ORDINALS = {1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth"}
GERMAN_ORDINALS = {1: "ersten", 3: "dritten", 7: "siebten", 8: "achten"}
