"""Which numbers of persons are looked for in which region, and how sure their shape makes it.

A number is checked by python-stdnum's module of that name. A check digit alone lets one in ten random numbers pass, so most numbers also
need a word that announces them; where the shape says enough (two check digits, a date inside, separators that nothing else has), it
stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Digits:
    """Digits in groups, such as (6, 4) for 640823-3234."""

    module: str  # of python-stdnum
    region: str
    alone: tuple[tuple[int, ...], ...] = ()  # groups that need no word, separated by `between`
    said: tuple[tuple[int, ...], ...] = ()  # groups that need one of `words` near them
    words: str = ""  # divided by |; one that ends in \\w* may go on
    between: str = "-"  # what may stand between groups that need no word


@dataclass(frozen=True, slots=True)
class Lettered:
    """Digits and capital letters, as a regular expression."""

    module: str
    region: str
    shape: str
    words: str = ""  # none: the shape stands alone


DIGITS = (
    Digits("ar.cuit", "AR", alone=((2, 8, 1),), said=((11,),), words="cuit|cuil"),
    Digits("at.vnr", "AT", said=((4, 6), (10,)), words="svnr|sozialversicherung\\w*|versicherungsnummer"),
    Digits("au.tfn", "AU", said=((3, 3, 3), (9,)), words="tfn|tax file"),
    Digits("be.nn", "BE", alone=((2, 2, 2, 3, 2),), said=((11,),), words="rijksregister\\w*|registre national|niss|insz", between=".-"),
    Digits("bg.egn", "BG", said=((10,),), words="egn|егн"),
    Digits("br.cpf", "BR", alone=((3, 3, 3, 2),), said=((11,),), words="cpf", between=".-"),
    Digits("ca.sin", "CA", said=((3, 3, 3), (9,)), words="sin|social insurance|nas"),
    Digits("ch.ssn", "CH", alone=((3, 4, 4, 2), (13,)), between=".- "),
    Digits("cl.rut", "CL", alone=((2, 3, 3, 1), (1, 3, 3, 1)), said=((8, 1), (7, 1)), words="rut|run", between=".-"),
    Digits("cn.ric", "CN", alone=((18,),)),
    Digits("cz.rc", "CZ", alone=((6, 4),), said=((10,), (6, 3)), words="rodné číslo|birth number|rc", between="/"),
    Digits("de.idnr", "DE", said=((11,), (2, 3, 3, 3)), words="steuer\\w*|id-nr|idnr|tax id\\w*|tin"),
    Digits("dk.cpr", "DK", said=((6, 4), (10,)), words="cpr|personnummer\\w*"),
    Digits("ee.ik", "EE", said=((11,),), words="isikukood\\w*"),
    Digits("fr.nir", "FR", alone=((1, 2, 2, 2, 3, 3, 2), (13, 2)), said=((15,),), words="nir|insee|sécurité sociale|sécu", between=" "),
    Digits("gb.nhs", "GB", said=((3, 3, 4), (10,)), words="nhs|health service"),
    Digits("gb.utr", "GB", said=((10,), (5, 5)), words="utr|taxpayer reference"),
    Digits("gr.amka", "GR", said=((11,),), words="amka|αμκα"),
    Digits("hr.oib", "HR", said=((11,),), words="oib"),
    Digits("il.idnr", "IL", said=((9,), (8, 1)), words="teudat zehut|תעודת זהות|israeli id"),
    Digits("in_.aadhaar", "IN", said=((4, 4, 4), (12,)), words="aadhaar|aadhar|uidai|आधार"),
    Digits("is_.kennitala", "IS", said=((6, 4), (10,)), words="kennitala\\w*"),
    Digits("jp.in_", "JP", said=((12,), (4, 4, 4)), words="my number|マイナンバー|個人番号"),
    Digits("kr.rrn", "KR", alone=((6, 7),), said=((13,),), words="rrn|resident registration|주민등록번호"),
    Digits("lt.asmens", "LT", said=((11,),), words="asmens kod\\w*"),
    Digits("my.nric", "MY", alone=((6, 2, 4),), said=((12,),), words="nric|mykad"),
    Digits("nl.bsn", "NL", said=((9,), (4, 2, 3)), words="bsn|burgerservicenummer|sofinummer"),
    Digits("no.fodselsnummer", "NO", alone=((11,), (6, 5)), between=" -"),
    Digits("nz.ird", "NZ", said=((3, 3, 3), (2, 3, 3), (9,), (8,)), words="ird"),
    Digits("pk.cnic", "PK", alone=((5, 7, 1),), said=((13,),), words="cnic"),
    Digits("pl.pesel", "PL", said=((11,),), words="pesel"),
    Digits("pt.nif", "PT", said=((9,), (3, 3, 3)), words="nif|contribuinte"),
    Digits("ro.cnp", "RO", said=((13,),), words="cnp|cod numeric"),
    Digits("ru.inn", "RU", said=((12,),), words="inn|инн"),
    Digits("se.personnummer", "SE", alone=((6, 4), (8, 4)), said=((10,), (12,)), words="personnummer|personal number"),
    Digits("si.emso", "SI", said=((13,),), words="emso|emšo"),
    Digits("sk.rc", "SK", alone=((6, 4),), said=((10,),), words="rodné číslo", between="/"),
    Digits("th.pin", "TH", alone=((1, 4, 5, 2, 1),), said=((13,),), words="thai id|citizen id|บัตรประชาชน"),
    Digits("tr.tckimlik", "TR", said=((11,),), words="tckn|tc kimlik|kimlik"),
    Digits("us.itin", "US", alone=((3, 2, 4),), said=((9,),), words="itin|taxpayer id\\w*"),
    Digits("za.idnr", "ZA", said=((13,), (6, 4, 3), (6, 4, 2, 1)), words="id|identity"),
)
LETTERED = (
    Lettered("cl.rut", "CL", r"\d{1,2}\.?\d{3}\.?\d{3}-K"),
    Lettered("cn.ric", "CN", r"\d{17}X"),
    Lettered("es.dni", "ES", r"\d{8}-?[A-Z]", words="dni|nif|documento|identidad"),
    Lettered("es.nie", "ES", r"[XYZ]-?\d{7}-?[A-Z]"),
    Lettered("fi.hetu", "FI", r"[0-3]\d[01]\d\d\d[-+A-FU-Y]\d{3}[0-9A-Y]"),
    Lettered("ie.pps", "IE", r"\d{7}[A-W][A-IW]?", words="pps\\w*|personal public service"),
    Lettered("in_.pan", "IN", r"[A-Z]{5}\d{4}[A-Z]"),
    Lettered("it.codicefiscale", "IT", r"[A-Z]{6}\d\d[A-EHLMPR-T]\d\d[A-Z]\d{3}[A-Z]"),
    Lettered("mx.curp", "MX", r"[A-Z]{4}\d{6}[HMX][A-Z]{5}[A-Z0-9]\d"),
    Lettered("mx.rfc", "MX", r"[A-Z]{4}\d{6}[A-Z0-9]{3}", words="rfc"),
    # The national insurance number has no check digit, but letters that only it has.
    Lettered("", "GB", r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"),
)
