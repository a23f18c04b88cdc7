"""French."""

from __future__ import annotations

import re

from memory_pipeline.text.languages.roles import Cues, any_of

_LEAD = (
    r"^\W*((ok|oui|non|bon|bien|super|parfait|merci|maintenant|ensuite|puis|alors|et|aussi|d'abord|"
    r"s'il (te|vous) plaît|stp|svp|tu peux|vous pouvez|peux-tu|pouvez-vous|pourrais-tu|est-ce que tu peux|"
    r"il faudrait)"
    r"[,.!:]?\s+)*"
)
_DO = (
    r"(regarde|montre|donne|fais|faites|fait|lance|exécute|execute|démarre|redémarre|crée|cree|ajoute|"
    r"corrige|lis|lire|"
    r"vérifie|verifie|teste?|cherche|trouve|explique|nettoie|écri[st]|ecris|écrire|modifie|change|supprime|"
    r"enlève|retire|"
    r"implémente|refactorise|mets|mettre|met|installe|ouvre|analyse|compare|continue|poursuis|essaie|essaye|déploie|"
    r"déplace|renomme|pousse|commit|commite|push|aide|dis|génère|compile|reprends|recommence|résume|prépare|"
    r"vas-y|allez-y)"
    r"(s|z|r|nt)?(-(moi|le|la|les|nous|y))*(?!\w)"
)
CUES = Cues(
    rule=any_of(
        r"\b(toujours|jamais|désormais|dorénavant|systématiquement|obligatoire(ment)?|impérativement|uniquement|"
        r"exclusivement|interdi(t|te|ts|ction)|à partir de (maintenant|là)|à l'avenir|en aucun cas|"
        r"sous aucun prétexte|"
        r"dans tous les cas)\b|\bil (ne )?faut\b|\b(doit|doivent|devons|devez|dois)\b",
        r"(^|[.,;:!?]\s*)(surtout )?(ne |n')\S+ .{0,20}\b(pas|plus|jamais|rien)\b|^\W*(surtout )?(pas de|"
        r"plus de|aucune?)\b",
        r"\bon (n'|ne )\S+ (pas|plus|jamais)\b|(^|[.,;:!?]\s*)évite[zr]?\b|\bchaque \w+ (a|doit|est|passe)\b",
    ),
    preference=any_of(
        r"\bje (préfère|déteste|n'aime pas|veux (que|pas|toujours)|ne veux (pas|plus)|voudrais que)\b",
        r"\b(utilise|prends|emploie|mets)[zr]?\b.*\b(au lieu|plutôt|et pas|et non|pas)\b",
    ),
    decision=any_of(
        r"\b(décid(é|ons|ée?s?)|décision|choisi|convenu|(mis|mises|d') ?accord (pour|sur)|opté)\b",
        r"\b(passons|restons|partons|gardons|prenons|allons-y avec|utilisons|abandonnons)\b",
        r"\bon (va (utiliser|partir|prendre|garder|passer|rester|faire)|prend|reste|garde|passe|part|migre|remplace|"
        r"abandonne|laisse tomber|choisit|utilise|bascule)\b|\b(au lieu d[eu']|plutôt que)\b",
    ),
    correction=any_of(
        r"^\W*(non|faux|stop|attends?|erreur|pas comme ça|encore une fois|toujours pas|c'est (faux|pas|incorrect)|"
        r"mauvaise? )(?!\w)",
        r"\bce n'(est|était) pas (ce que|ça|la|le|correct|vrai|exact)|\bc'(est|était) (faux|pas (ça|ce que|vrai))|"
        r"\bje (t'|te |vous )ai (déjà )?(dit|demandé)|\bje n'ai pas (dit|demandé)|\bmal compris\b|"
        r"\bje (voulais dire|parlais)\b|\ble mauvais \w+",
    ),
    contrast=any_of(r"\b(et )?(pas|non)\b[^.;!?]{1,40}\bmais\b|, (et )?(pas|non) \S+"),
    asking=any_of(
        r"^\W*((et|mais|ok|alors|bon|donc)[,:]?\s+)*(pourquoi|où|comment|quand|qui|que|quoi|combien|lequel|laquelle|"
        r"quel(le)?s?|de quel(le)?|à quoi|est-ce qu|qu'est-ce|c'est quoi|(est|sont|a|ont|faut|doit|devrait|"
        r"peut|y a)-?t?-"
        r"(il|elle|on|ce|ils|elles)|(sais|as|es)-tu|dois-je|devrait-on|peut-on)",
        r"\bje me demande (si|pourquoi|comment)\b",
    ),
    correcting_question=any_of(r"^\W*pourquoi (tu|as-tu|est-ce que tu)\b"),
    open=any_of(r"\b(aucune idée|je ne sais pas|à décider|encore ouvert)\b"),
    momentary=any_of(
        rf"{_LEAD}{_DO}", r"^\W*(peux-tu|pourrais-tu|tu peux|pouvez-vous|j'aimerais que tu|je veux que tu)\b"
    ),
    accepting=any_of(
        r"^\W*(oui|ouais|ok|d'accord|bien sûr|vas-y|allez-y|parfait|exact|exactement|très bien|ça marche|c'est bon|"
        r"entendu|fais-le|fais ça)(?!\w)"
    ),
    acceptance=any_of(
        r"^(oui|ouais|ok|d'accord|bien|sûr|vas|allez|y|parfait|exact|exactement|très|ça|marche|c'est|bon|"
        r"merci|beaucoup|"
        r"continue|continuez|super|génial|entendu|et|maintenant|stp|svp|\d|[abc]|\W)+$"
    ),
    root_cause=any_of(
        r"\b(la (vraie )?cause|le (vrai )?problème|l'erreur|la raison|le bug) (est|était|vient|venait)\b|"
        r"\b(causée?s? par|provenait de|venait d[eu'])\b"
    ),
    state_change=any_of(
        r"\b(renommé|remplacé|supprimé|migré|déplacé|installé|mis à jour|désactivé|activé|ajouté|corrigé|"
        r"retiré)e?s?\b"
    ),
    convention=any_of(r"\b(convention|par défaut|nommage)\b"),
    progress=any_of(r"\btests (passent|sont verts)|\b(déployé|fusionné|publié|commité)e?s?\b"),
    reason=any_of(r"\b(parce qu|car|puisqu|sinon|afin|pour que|à cause)"),
    plan=any_of(
        r"^\W*(maintenant,? |d'abord,? |ensuite,? )?(je (vais|regarde|vérifie|lis|cherche|lance|commence)|"
        r"laisse-moi|voyons)\b"
    ),
    offer=any_of(
        r"\b(veux-tu|voulez-vous|souhaites-tu|souhaitez-vous|dois-je|n'hésite[zs]?|si (tu|vous) (veux|voulez))\b"
    ),
    praise=any_of(
        r"^\W*(tu as (tout à fait |parfaitement )?raison|parfait|excellent|super|bonne (question|idée)|c'est fait|"
        r"terminé|compris|désolé|bien sûr|d'accord)\b[^.]{0,40}[.!,]?\s*$"
    ),
    doubt=any_of(
        r"\b(peut-être|probablement|éventuellement|sans doute|pourrait|pourraient|semble|je (pense|crois|suppose)|"
        r"pas sûr)\b"
    ),
    for_now=any_of(r"\b(pour (le moment|l'instant)|cette fois|en ce moment)\b"),
    proposal=any_of(r"\b(je (propose|suggère|recommande)|on pourrait|nous pourrions|option [a-d1-9])\b"),
    supposes=any_of(
        r"\b(peut-être|éventuellement|et si|ce serait (bien|mieux|possible))\b|\bsi on (avait|"
        r"pouvait)\b"
    ),
    replaces=(
        re.compile(r"\b(?:au lieu d[eu']|plutôt qu[e']|à la place d[eu']) ?(?P<old>.+)", re.I),
        re.compile(r"\bremplac\w* (?P<old>.+?) par ", re.I),
        re.compile(r"\b(?:pass|migr|bascul)\w* de (?P<old>.+?) (?:à|vers) ", re.I),
        re.compile(r"\bn(?:e |['’])\w+ plus (?P<old>.+)", re.I),
        re.compile(r"\b(?:et )?(?:pas|non|jamais) (?P<old>.+)", re.I),
    ),
    denies=re.compile(r"\b(?:jamais|pas|plus|aucune?|sans|évite[rz]?|au lieu)\b(?P<words>[^,.;:!()]*)", re.I),
)
