"""Verbs with their principal parts, what they govern, and where and how they happen."""

from typing import NamedTuple

from nmt.data.sample.lexicon.function_words import PREPOSITIONS, Agreement, Case, Preposition
from nmt.data.sample.lexicon.nouns import Noun, nouns

Slots = tuple[tuple[Preposition, tuple[Noun, ...]], ...]


def slots(text: str) -> Slots:
    """Read prepositions with their nouns: ``"into room; to spot person"``."""
    entries = (entry.split(maxsplit=1) for entry in text.split(";") if entry)
    return tuple((PREPOSITIONS[preposition], nouns(names)) for preposition, names in entries)


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
    """Parse one verb; the notation is explained at the head of the package."""
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
