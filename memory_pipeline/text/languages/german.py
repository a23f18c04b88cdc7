"""German."""

from __future__ import annotations

import re

from memory_pipeline.text.languages.roles import Cues, any_of

_LEAD = (
    r"^\W*((ok(ay)?|gut|super|prima|danke|ja|nein|jetzt|dann|bitte|und|also|so|nun|noch|mal|als nächstes|zuerst|"
    r"(kannst|könntest|würdest) du|können wir)[,.!:]?\s+)*"
)
_DO = (
    r"(schau|guck|sieh|zeig|gib|mach|führ|start|fahr|bring|teil|erstell|bau|füg|beheb|behebe|fix|lies|prüf|"
    r"überprüf|check|commit|push|lauf|"
    r"lass (die|den|das|mal)|test|such|find|erklär|räum|schreib|änder|lösch|entfern|implementier|refaktorier|"
    r"refactor|aktualisier|installier|leg|öffne|analysier|vergleich|weiter|probier|versuch|deploy|merg|hol|lad|setz|"
    r"pack|stell|nenn|sag|hilf|bereinig|ergänz|erweiter|verschieb|kopier|benenn|untersuch|fass|los\b)"
)
CUES = Cues(
    rule=any_of(
        r"\b(immer|nie|niemals|nirgends|stets|ab (jetzt|sofort)|von (jetzt|nun) an|künftig|zukünftig|in zukunft|"
        r"grundsätzlich|ausschließlich|ausnahmslos|durchgehend|durchgängig|zwingend|verboten|pflicht|keinesfalls|"
        r"(auf keinen|in keinem|in jedem|auf jeden) fall|unter keinen umständen)\b(?! noch)",
        r"\b(muss|musst|müssen|müsst)\b|\b(darf|darfst|dürfen|dürft|soll|sollst|sollen|sollte|sollten)\b.{0,60}\b"
        r"(nicht|kein\w*|nur|nie|immer)\b",
        r"^\W*(bitte )?kein(e|en|er|es)? \w+|\bhaben? .{0,40}nichts (zu suchen|verloren)\b",
        r"\bjede[rsnm]? [\w-]+ (braucht|bekommt|hat|gehört|soll)\b|\bgehör(t|en) (nicht |nur |immer )?(in|"
        r"ins|unter|nach)\b",
        rf"{_LEAD}({_DO}|nimm|nutz|benutz|verwend|rühr|geh|häng|speicher|verlass|greif)\w*\b.*\b(nicht|"
        rf"kein\w*|nur)\b",
    ),
    preference=any_of(
        r"\bich (mag|hasse|bevorzuge|hätte gerne?|möchte|will|finde)\b.{0,60}\b(nicht|kein\w*|lieber|nur|"
        r"besser|alle)\b",
        r"\b(lieber|bevorzugt|am liebsten)\b",
        r"\b(nutz|nimm|verwend|benutz)(e|t|en)?\b.*\b(statt|anstatt|anstelle|nicht|sondern)\b",
    ),
    decision=any_of(
        r"\b(entschieden|entscheidung|beschlossen|beschluss|vereinbart|geeinigt|einig|einigung|festgelegt)\b",
        r"\b(lasst?|lass) uns\b|\bwir (nehmen|nutzen|bleiben|verwenden|benutzen|wechseln|behalten|verzichten|"
        r"gehen|setzen|"
        r"machen|steigen|streichen|lassen|ersetzen|migrieren|stellen|ziehen)\b",
        r"\b(bleiben|nehmen|machen|gehen|behalten|streichen|setzen) wir\b|\b(statt|anstatt|anstelle)\b",
    ),
    correction=any_of(
        r"^\W*(nein|nee|nö|ne|falsch|stopp?|halt|moment|nochmal|noch einmal|wieder falsch|nicht so|so nicht|so war|"
        r"stimmt nicht|immer noch (falsch|nicht))\b",
        r"\b(das|es) (ist|war|stimmt|wäre) (falsch|nicht (richtig|das|so|die|der))|\bdas stimmt nicht\b",
        r"\b(hab(e)?|hatte) ich (nicht|doch|schon|dir)\b|\bich hab(e|t+e)? (doch|dir|schon) .*gesagt\b|"
        r"\b(missverstanden|falsch verstanden)\b|\b(ich )?meinte\b|\bnicht (so )?gemeint\b",
        r"\b(die|das|den|der) falsche[nr]? \w+|^\W*nicht \S+, ",
    ),
    contrast=any_of(r"\bnicht\b[^.;!?]{1,40}\bsondern\b|\bund nicht\b"),
    asking=any_of(
        r"^\W*((und|aber|ok|also|so|hey|sag mal)[,:]?\s+)*(warum|wieso|weshalb|wo|woher|wohin|wann|wer|wen|wem|"
        r"wie(?! (gesagt|besprochen|vorher))|was|welche[rsnm]?|wozu|womit|wofür|wodurch|"
        r"(soll|sollen|sollte|sollten|muss|müssen|darf|dürfen) (ich|wir|das|es|man|der|die)|"
        r"(ist|sind|war|hat|haben|gibt|geht|läuft|kann) (das|es|der|die|da|hier|man|ich|wir)|(hast|weißt|bist) du)\b",
        r"\b(frage? mich|weißt du,? (ob|warum|wie|wo)|unklar,? ob)\b",
    ),
    correcting_question=any_of(
        r"^\W*(warum (hast|änderst|machst|nimmst|benutzt) du|hatte ich nicht|wieso (hast|machst) du)"
    ),
    open=any_of(r"\b(keine ahnung|weiß (ich )?(noch )?nicht|noch offen|ungeklärt)\b"),
    momentary=any_of(
        rf"{_LEAD}{_DO}\w*", r"^\W*(kannst|könntest|würdest) du\b|^\W*ich (möchte|will|brauche),? dass du\b"
    ),
    accepting=any_of(
        r"^\W*(ja|jo|jep|ok(ay)?|gut|klar|gerne?|passt|genau|richtig|einverstanden|in ordnung|mach(en)? (das|es|wir)|"
        r"mach mal|leg los|weiter so|perfekt|super|stimmt)\b"
    ),
    acceptance=any_of(
        r"^(ja|jo|jep|ok(ay)?|gut|klar|gerne?|passt|genau|richtig|einverstanden|danke|bitte|super|perfekt|prima|"
        r"mach|mal|weiter|so|das|leg|los|fertig|und|jetzt|dann|nächstes?|als|sehr|schön|toll|\d|[abc]|\W)+$"
    ),
    root_cause=any_of(
        r"\b(ursache|grund|problem|fehler) (war|ist|lag|liegt)\b|\blag (daran|an)\b|\bliegt (daran|an|in)\b|"
        r"\b(eigentliche|wahre)s? (ursache|problem|grund|fehler)\b|\bverursacht (durch|von|hat)\b"
    ),
    state_change=any_of(
        r"\b(umbenannt|ersetzt|entfernt|gelöscht|migriert|verschoben|installiert|aktualisiert|umgestellt|deaktiviert|"
        r"aktiviert|hinzugefügt|behoben|ergänzt|eingebaut|umgezogen)\b|\b(jetzt|nun) (mit|über|in|nutzt|"
        r"läuft|verwendet)\b"
    ),
    convention=any_of(r"\b(konvention|standardmäßig|namensschema|üblicherweise|heißen alle)\b"),
    progress=any_of(
        r"\b(alle )?(\d+ )?tests (laufen|sind grün|bestehen)|\b(deployed|gemergt|committet|veröffentlicht)\b"
    ),
    reason=any_of(r"\b(weil|da|denn|damit|sonst|ansonsten|wegen|grund)\b"),
    plan=any_of(
        r"^\W*(jetzt |nun |zuerst |dann |als nächstes )?(ich (werde|schaue|prüfe|sehe|lese|suche|führe|"
        r"starte|mache|muss)|"
        r"(schaue|prüfe|lese|sehe|werde|führe) ich|lass mich)\b"
    ),
    offer=any_of(r"\b(soll ich|möchtest du|willst du|wenn du (möchtest|willst)|sag (mir )?bescheid|melde dich)\b"),
    praise=any_of(
        r"^\W*(du hast (völlig |absolut |ganz )?recht|super|perfekt|sehr gut|gute (frage|idee)|fertig|erledigt|klar|"
        r"verstanden|entschuldigung|tut mir leid|alles klar|gerne)\b[^.]{0,40}[.!,]?\s*$"
    ),
    doubt=any_of(
        r"\b(vielleicht|eventuell|möglicherweise|vermutlich|wahrscheinlich|womöglich|könnte|könnten|scheint|"
        r"anscheinend|"
        r"ich (glaube|denke|vermute)|nicht sicher|wohl)\b"
    ),
    for_now=any_of(r"\b(vorerst|erstmal|diesmal|im moment|gerade|momentan|fürs erste)\b"),
    proposal=any_of(r"\b(vorschlag|schlage vor|empfehle|würde ich|könnte(n|st)? (ich|wir|man|du)|option [a-d1-9])\b"),
    supposes=any_of(
        r"\b(vielleicht|eventuell|möglicherweise|womöglich|was wäre,? wenn|wäre (schön|nett|gut|cool|möglich))\b|"
        r"\b(falls|wenn) (wir|ich)\b.*\b(hätten?|könnten?|würden?|wollten?)\b"
    ),
    replaces=(
        re.compile(r"\b(?:anstelle von|anstatt|statt) (?P<old>.+)", re.I),
        re.compile(r"\bersetz\w* (?P<old>.+?) durch ", re.I),
        re.compile(r"\b(?:wechsel|umsteig|umstell|migrier|weg)\w* von (?P<old>.+?) (?:auf|zu|nach) ", re.I),
        re.compile(r"\b(?:nicht mehr|nie mehr|kein\w* .{0,20}mehr) (?P<old>.+)", re.I),
        re.compile(r"\b(?:und )?(?:nicht|niemals|nie) (?P<old>.+?)(?: mehr\b|$|, )", re.I),
    ),
    denies=re.compile(
        r"\b(?:nie|niemals|nicht|kein\w*|ohne|statt|anstatt|verzicht\w* auf|weg von)\b(?P<words>[^,.;:!()]*)", re.I
    ),
)
