"""Words in timestamps: names of months and days in six languages, and of time zones.

``normalized`` rewrites a timestamp so that the general parser reads it: names of months in English, no names of days,
and one notation of the zone.
"""

from __future__ import annotations

import re
import unicodedata
import zoneinfo
from functools import cache

# Abbreviations of time zones, with the offsets in hours that the parser of the reference product assumes (those of
# dates in mail, RFC 2822, section 4.3, among them).
ZONES = {
    name: round(hours * 3600)
    for hours, names in {
        -12: "IDLW",
        -11: "SST",
        -10: "HST HAST AHST TAHT",
        -9.5: "MART",
        -9: "AKST HADT HDT YST GAMT",
        -8: "PST AKDT YDT",
        -7: "MST PDT",
        -6: "CST MDT GALT",
        -5: "EST CDT COT PET ECT",
        -4: "EDT AST CLT BOT VET GYT",
        -3.5: "NST",
        -3: "ADT BRT ART CLST UYT GFT SRT PMST",
        -2.5: "NDT",
        -2: "BRST UYST PMDT",
        -1: "AZOT CVT EGT",
        0: "WET UCT AZOST",
        1: "CET BST WEST MET MEZ WAT MEWT FWT SWT",
        2: "CEST EET MEST MESZ SAST CAT FST",
        3: "EEST MSK EAT TRT SYOT",
        3.5: "IRST",
        4: "MSD GET MUT RET SAMT AZT",
        4.5: "AFT IRDT",
        5: "PKT UZT TJT TMT MVT YEKT ORAT",
        5.5: "IST",
        5.75: "NPT",
        6: "BTT OMST YEKST QYZT",
        6.5: "MMT",
        7: "ICT WIB KRAT NOVT HOVT",
        8: "SGT HKT AWST WITA PHT IRKT ULAT BNT MYT",
        9: "JST KST WIT YAKT TLT",
        9.5: "ACST",
        10: "AEST PGT VLAT CHST GST",
        10.5: "ACDT LHST",
        11: "AEDT NCT SAKT MAGT SBT",
        12: "NZST NZT FJT IDLE PETT TVT WAKT",
        13: "NZDT PHOT TOT",
    }.items()
    for name in names.split()
}
ZONE_NAMES = {*ZONES, "UTC", "GMT"}

_MONTHS = {
    "Jan": "januar jan janvier janv januari enero ene gennaio gen jaenner january",
    "Feb": "februar feb fevrier fevr fev februari febrero febbraio february",
    "Mar": "marz maerz mrz mars mar maart mrt marzo march",
    "Apr": "april apr avril avr abril abr aprile",
    "May": "mai may mei mayo maggio mag",
    "Jun": "juni jun juin junio giugno giu june",
    "Jul": "juli jul juillet juil julio luglio lug july",
    "Aug": "august aug aout aou augustus agosto ago",
    "Sep": "september sep sept septembre septiembre setiembre settembre set",
    "Oct": "oktober okt octobre oct octubre ottobre ott october",
    "Nov": "november nov novembre noviembre",
    "Dec": "dezember dez decembre dec december diciembre dic dicembre",
}
MONTHS = {word: name for name, words in _MONTHS.items() for word in words.split()}
_DAYS = """monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr sa so
lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim
maandag dinsdag woensdag donderdag vrijdag zaterdag zondag ma wo vr za zo
lunes martes miercoles jueves viernes sabado domingo mie jue vie sab dom
lunedi martedi mercoledi giovedi venerdi sabato domenica gio"""
_FILLERS = "uhr um de del den der le el il las los om op alle ore at kl a"
DAYS, FILLERS = frozenset(_DAYS.split()), frozenset(_FILLERS.split())
_WORD = re.compile(r"[^\W\d_]+\.?,?")
_DAY_BEFORE_MONTH = re.compile(r"(\b\d{1,2})\.(?=\s+[^\W\d_])")
_LEADING_AM = re.compile(r"\Aam\s+(?=\d)", re.IGNORECASE)
_HOUR = re.compile(r"\b(\d{1,2})\s?h\s?(\d\d)\b", re.IGNORECASE)  # 08h14
_DATE_AND_TIME = re.compile(r"(\d)(?:_|\s+@\s+)(?=\d{1,2}:)")
_ENCLOSED = re.compile(r"(?:\[([^\[\]]*)\]|\(([^()]*)\))\s*\Z")
_OFFSET = re.compile(r"(?:\d|Z|UTC|GMT|\s)[+-]\d\d:?\d\d\Z|:\d\d(?:[.,]\d+)?\s?Z\Z", re.IGNORECASE)
_SECONDS_OF_OFFSET = re.compile(r"([+-]\d\d:\d\d):\d\d\Z")
_LAST_ZONE = re.compile(r"(?<![A-Za-z_/])[A-Z][A-Za-z0-9_/+-]{0,60}\Z")
_SIGNED = re.compile(r"(?:UTC|GMT)?\s?([+-]\d\d?:?(?:\d\d)?)", re.IGNORECASE)


def normalized(text: str) -> tuple[str, zoneinfo.ZoneInfo | None]:
    """Return a timestamp in words that the general parser knows, and the zone that its last word names, if any."""
    text = _HOUR.sub(r"\1:\2", _DATE_AND_TIME.sub(r"\1 ", text))
    text = _english(_DAY_BEFORE_MONTH.sub(r"\1", _LEADING_AM.sub("", text)))
    enclosed: str | None = None
    while match := _ENCLOSED.search(text):
        text, enclosed = text[: match.start()], (match[1] or match[2] or "").strip()
    text = _SECONDS_OF_OFFSET.sub(r"\1", text.strip())
    if enclosed is not None and not _OFFSET.search(text) and not _names_zone(text):
        text += _as_zone(enclosed)
    last = _LAST_ZONE.search(text)
    if last and last[0].upper() not in ZONE_NAMES and (zone := zone_named(last[0])):
        return text[: last.start()].rstrip(), zone
    return text, None


@cache
def zone_named(name: str) -> zoneinfo.ZoneInfo | None:
    """Return a zone of the tz database by its name (``Europe/Berlin``); ``None`` if there is none."""
    return zoneinfo.ZoneInfo(name) if name in zoneinfo.available_timezones() else None


def _names_zone(text: str) -> bool:
    return text.rpartition(" ")[2].upper() in ZONE_NAMES


def _as_zone(name: str) -> str:
    """Return what stood in brackets as the zone at the end of a text; nothing if it names none."""
    if signed := _SIGNED.fullmatch(name):
        return f" {signed[1]}"
    return f" {name}" if name.upper() in ZONE_NAMES or zone_named(name) else ""


def _english(text: str) -> str:
    words = [_plain(word) for word in _WORD.findall(text)]
    if not any(word in MONTHS or word in DAYS or word in FILLERS for word in words):
        return text
    months = sum(word in MONTHS for word in words)

    def replace(found: re.Match[str]) -> str:
        word = _plain(found[0])
        if word in DAYS and (word not in MONTHS or months > 1):
            return ""
        if word in MONTHS:
            return MONTHS[word]
        return "" if word in FILLERS else found[0]

    return " ".join(_WORD.sub(replace, text).split())


def _plain(word: str) -> str:
    """Return a word in lower case, without accents and punctuation."""
    letters = unicodedata.normalize("NFKD", word.strip(".,").lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
