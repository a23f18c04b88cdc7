"""Spanish."""

from __future__ import annotations

import re

from memory_pipeline.text.languages.roles import Cues, any_of

_LEAD = (
    r"^\W*((ok|sí|si|vale|bien|bueno|perfecto|genial|gracias|ahora|luego|después|entonces|y|también|primero|"
    r"por favor|"
    r"puedes|podrías|puede|podría|me puedes)[,.!:]?\s+)*"
)
_DO = (
    r"(mira|muestra|muéstra|da|dame|haz|hacer|lanza|ejecuta|corre|arranca|inicia|reinicia|crea|agrega|añade|arregla|"
    r"corrige|lee|leer|revisa|revísa|verifica|comprueba|prueba|busca|encuentra|explica|explíca|limpia|"
    r"escribe|modifica|"
    r"cambia|borra|elimina|quita|implementa|refactoriza|pon|instala|abre|analiza|compara|continúa|continua|"
    r"sigue|intenta|"
    r"despliega|mueve|renombra|sube|súbe|commitea|pushea|ayuda|ayúda|dime|genera|compila|resume|prepara|actualiza|"
    r"actualizar|adelante|empieza)(r|me|lo|la|los|las|melo|nos)*\b"
)
CUES = Cues(
    rule=any_of(
        r"\b(siempre|nunca|jamás|(a partir|de) (de )?ahora( en adelante)?|en adelante|obligatori\w+|únicamente|"
        r"exclusivamente|solamente|prohibid[oa]s?|en ningún caso|bajo (ningún|ninguna) \w+|sin excepción)\b",
        r"\b(no )?hay que\b|\b(debe|deben|debes|debemos)\b|\b(tiene|tienen|tienes|tenemos) que\b",
        r"(^|[.,;:!?]\s*)(por favor,? )?no (me |lo |la |le |los |se )?\w+(es|as|éis|áis)\b|(^|"
        r"[.,;:!?]\s*)evita[rd]?\b",
        r"\bcada \w+ (debe|tiene|lleva|necesita)\b|^\W*(nada de|ningun[oa]?|prohibido)\b",
    ),
    preference=any_of(
        r"\b(prefiero|odio|no me gusta|no quiero|quiero que (siempre|todo)|me gusta que)\b",
        r"\b(usa|utiliza|emplea|pon)\b.*\b(en (vez|lugar) de|y no|no)\b",
    ),
    decision=any_of(
        r"\b(decid(ido|imos|í)|decisión|elegi(mos|do)|acordad[oa]|acordamos|de acuerdo en|optamos|queda decidido)\b",
        r"\b(vamos a (usar|hacer|ir|pasar|cambiar|mantener|dejar|migrar)|vamos con|nos quedamos|pasemos|usemos|"
        r"cambiemos|mantenemos|mantengamos|migramos|reemplazamos|sustituimos|descartamos|dejamos|usamos|pasamos)\b",
        r"\b(en (vez|lugar) de)\b",
    ),
    correction=any_of(
        r"^\W*(no,|no\.|no no|mal\b|incorrecto|falso|alto|para,|espera|así no|otra vez|sigue mal|todavía no|"
        r"(eso|esto) (está mal|no))",
        r"\bno (es|era|fue|son) (lo que|eso|así|cierto|verdad|correcto|esa?|ese)\b|\best(á|aba) mal\b|"
        r"\b(ya )?te (dije|había dicho|pedí)\b|\bno (te )?(pedí|dije)\b|\bme (entendiste|has entendido) mal\b|"
        r"\b(me refería|no me refiero|quería decir|hablaba d)|\b(el|la) \w+ equivocad[oa]\b",
    ),
    contrast=any_of(r"\bno\b[^.;!?]{1,40}\bsino\b|, (y )?no \S+|\by no \S+"),
    asking=any_of(
        r"^\W*((y|pero|ok|entonces|vale)[,:]?\s+)*(por qué|porqué|dónde|cómo|cuándo|cuánd?t[oa]s?|quién|qué|"
        r"cuál(es)?|"
        r"para qué|a qué|deberíamos|debería|debo|es posible|sabes (si|por|cómo))\b|¿",
        r"\bme pregunto (si|por|cómo)\b",
    ),
    correcting_question=any_of(r"^\W*por qué (has|estás|cambi|usas)"),
    open=any_of(r"\b(ni idea|no sé|por decidir|sin decidir)\b"),
    momentary=any_of(rf"{_LEAD}{_DO}", r"^\W*(puedes|podrías|puede|podría|quiero que|necesito que)\b"),
    accepting=any_of(
        r"^\W*(sí|si|ok|vale|claro|de acuerdo|adelante|perfecto|exacto|correcto|dale|está bien|hazlo|"
        r"por supuesto|bien)\b"
    ),
    acceptance=any_of(
        r"^(sí|si|ok|vale|claro|de|acuerdo|adelante|perfecto|exacto|correcto|dale|está|bien|hazlo|por|favor|supuesto|"
        r"gracias|muchas|sigue|continúa|genial|y|ahora|listo|\d|[abc]|\W)+$"
    ),
    root_cause=any_of(
        r"\b(la causa|el problema|el error|la razón|el fallo) (es|era|fue|estaba|está|viene)\b|\bcausad[oa]s? por\b|"
        r"\bse deb(e|ía) a\b"
    ),
    state_change=any_of(
        r"\b(renombrad|reemplazad|eliminad|migrad|movid|instalad|actualizad|desactivad|activad|añadid|"
        r"agregad|corregid)"
        r"[oa]s?\b"
    ),
    convention=any_of(r"\b(convención|por defecto|nomenclatura)\b"),
    progress=any_of(r"\b(tests|pruebas) pasan\b|\b(desplegad|fusionad|publicad)[oa]s?\b"),
    reason=any_of(r"\b(porque|ya que|para que|si no|debido|así)\b"),
    plan=any_of(r"^\W*(ahora |primero |luego )?(voy a|vamos a (ver|revisar)|déjame|miro|reviso|leo|busco|ejecuto)\b"),
    offer=any_of(r"\b(quieres que|te gustaría|deseas|si quieres|avísame|puedo ayudarte)\b"),
    praise=any_of(
        r"^\W*(tienes (toda la )?razón|perfecto|excelente|genial|buena (pregunta|idea)|hecho|listo|entendido|perdón|"
        r"lo siento|claro|de acuerdo)\b[^.]{0,40}[.!,]?\s*$"
    ),
    doubt=any_of(
        r"\b(quizás?|tal vez|probablemente|posiblemente|a lo mejor|podría|podrían|parece|creo que|supongo|"
        r"no estoy seguro)\b"
    ),
    for_now=any_of(r"\b(por (ahora|el momento)|esta vez|de momento)\b"),
    proposal=any_of(r"\b(propongo|sugiero|recomiendo|podríamos|opción [a-d1-9])\b"),
    supposes=any_of(
        r"\b(quizás?|tal vez|a lo mejor|y si|sería (bueno|mejor|posible))\b|\bsi (tuviéramos|pudiéramos)\b"
    ),
    replaces=(
        re.compile(r"\ben (?:vez|lugar) de (?P<old>.+)", re.I),
        re.compile(r"\b(?:reemplaz|sustitu|cambi)\w* (?P<old>.+?) por ", re.I),
        re.compile(r"\b(?:pas|migr|cambi)\w* de (?P<old>.+?) a ", re.I),
        re.compile(r"\bya no (?:us\w+ )?(?P<old>.+)", re.I),
        re.compile(r"(?:\by |, ?)(?:no|nunca|jamás) (?:us\w+ )?(?P<old>.+)", re.I),
    ),
    denies=re.compile(r"\b(?:nunca|jamás|no|sin|evita[rd]?|ningun[oa]?)\b(?P<words>[^,.;:!()]*)", re.I),
)
