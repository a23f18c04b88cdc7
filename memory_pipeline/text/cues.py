"""English words by which a sentence of a session shows what kind of fact it is.

These are for talk, as it was said: the kinds of `kinds.py` and the extractive observer go by them, and its weights were
fitted with them. What a finished line gives away is in `wording.py`, and a request of the moment in `momentary.py`.
Those of other languages are in `languages/`, by the same names.
"""

from __future__ import annotations

import re

from memory_pipeline.text.languages.roles import any_of

RULE = any_of(
    # "that should never happen" complains about what did
    r"\b(always|never(?! mind| happen)|must(n't)?|from now on|under no circumstances|at all times)\b",
    r"(^|[.,;:!?]\s*|\b(please|and|but|so|again|then|just)\s+)(do not|don'?t|stop|avoid)\s+(ever\s+)?(?!know|"
    r"think|mind|worry)\w+",
    r"\b(only|every) (use|run|commit|push|write|change|\w+ must)\b",
    r"\b(should|shall|may|can) (always|never|not|only)\b(?! happen)",
    # rules reported as how things are: "no log files inside containers", "one pr per carrier", "every export writes …"
    r"\bno (?!need)\w+( \w+)? (in|inside|for|from|between|by|at|outside)\b|\bone \w+ per \w+",
    r"\b(each|every) \w+ (gets?|has|writes?|needs?|runs?|goes|is)\b|\b(has|have) to \w+|\bnot acceptable\b",
)
PREFERENCE = any_of(
    r"\bi('d| would)? (rather|prefer|hate|love|don'?t (like|want)|like (it )?when|want (all|every|no))\b",
    r"\b(prefer|please use|use (\S+ ){1,6}(instead|not|over|rather|no))\b",
)
DECIDED = any_of(r"\b(decision|decided|agreed|settled on|we('re| are)? (use|using|chose|keep|keeping))\b")
DECISION = any_of(
    r"\b(let'?s|we('ll| will| should)?) (go with|use|keep|drop|stick|switch|move to|adopt)\b",
    r"\b(decided|decision|agreed|settled on|go(ing)? with|chose|we('re| are) (using|keeping|dropping|going))\b",
    r"\b(instead of|rather than|in favou?r of)\b",
)
OBLIGATION = any_of(r"\b(must|has to|have to|needs? to|shall|may not|can'?t|cannot|not acceptable|only)\b")
CORRECTION = any_of(
    r"^\W*(no|nope|wrong|again|stop|wait|not quite|that('s| is) (not|wrong))\b",
    r"\b(i (said|told you|meant|asked)|not what i|you('re| are) wrong|that('s| is) (wrong|not (right|true|it|how)))\b",
    r"\b(is|was|it'?s|are) not (the|a|caused|because)\b.*\b(but|it'?s|it is|was)\b",
)
OPEN = any_of(
    r"\b(i('m| am)? (don'?t|do not|not) (know|sure)|no idea|open question|still open|to be decided|undecided|tbd)\b"
)
"""Something that nobody knows yet."""
ASKING = any_of(
    r"^\W*((so|and|but|ok(ay)?|also|well)[,:]?\s+)*((should|shall|can|could|would|will) (i|we|it|they|this|that|the)|"
    r"(do|have) (i|we|you|they)|(is|are|was|were|does|did|has) (i|we|you|it|they|this|that|these|those|there|the)|"
    r"(why|how|where|when|what|who) (should|shall|do|don'?t|does|did|can|could|would|is|are|was|were) "
    r"(i|we|you|it|they|this|that|there|the)|(i('m| am| was| just)? (just )?|just )wonder(ing)? (if|whether|why|how)|"
    r"any idea|(please )?(tell me|let me know|ask|check|clarify) (if|whether|why|how))\b"
)
"""A question that does without its mark."""
CORRECTING_QUESTION = any_of(
    r"^\W*(why (are|did|do|would) you|didn'?t (i|we)|shouldn'?t (it|this|that|we|you)|isn'?t (it|this|that)|don'?t you)"
)
ROOT_CAUSE = any_of(
    r"\b(root cause|(real|actual) (cause|problem|issue|reason)|turn(s|ed) out|caused by|the culprit)\b",
    r"\bthe (problem|issue|bug|reason|failure|error|cause) (is|was|came|comes)\b",
)
STATE_CHANGE = any_of(
    r"\b(renamed|replaced|removed|deleted|migrated|moved|installed|upgraded|switched|deprecated|disabled|enabled)\b",
    r"\b(now (uses?|runs?|returns?|reads?|lives?|has|is|supports?|includes?)|no longer|added|fixed( by)?)\b",
)
CONVENTION = any_of(
    r"\b(convention|by default|pattern|naming|named after|is (always|only) (set|used|called)|lives? in|is stored in)\b"
)
PROGRESS = any_of(
    r"\b(tests? (now )?pass(es|ed)?|all (\d+ )?tests|deployed|merged|released|committed|shipped|is (done|"
    r"complete)|works now)\b"
)
FOUND = any_of(
    r"\b(root cause|turn(s|ed) out|(real|actual) (cause|problem|issue|reason)|was caused by)\b",
    r"\bthe (problem|issue|bug|reason|failure|error|cause) was\b",
)
"""A cause reported as found, not as one that is just being looked at."""
REASON = any_of(r"\b(because|so that|since|otherwise|in order to|reason)\b")

ACCEPTANCE = re.compile(
    r"^(ok(ay)?|yes|yep|yeah|sure|thanks?( you)?|thx|great|good|nice|perfect|cool|done|continue|proceed|go( ahead)?|"
    r"do it|please( do)?|sounds good|lgtm|agreed|right|correct|exactly|next|and|now|it|then|1|2|3|a|b|c|\W)+$",
    re.I,
)
"""Nothing but consent: means something only beside what it answers."""
ACCEPTING = re.compile(
    r"^\W*(ok(ay)?|yes|yep|yeah|yup|sure|agreed|right|correct|exactly|sounds good|lgtm|go (ahead|for it)|"
    r"do (it|that|so)|proceed|please do|fine|good idea|makes sense|perfect|great)\b",
    re.I,
)
"""Begins with consent, whatever follows."""
PLAN = any_of(
    r"^\W*(now,? )?(let me|let's|i'?ll|i will|i'?m going to|i am going to|i need to|i should|next,? i|first,? i|"
    r"going to)\b",
    r"^\W*(now )?(looking|checking|reading|running|searching|trying|let us|time to|wait)\b",
)
OFFER = any_of(
    r"\b(would you like|do you want|shall i|should i|want me to|let me know|feel free|happy to|"
    r"if you('d)? (like|want))\b"
)
PROPOSAL = any_of(
    r"\b(i'd|i would|i create|(i|we|you)('ll| will| can| could| should)|recommend(ation|ed)?|suggest(ion|ed)?)\b",
    r"\b(proposed?|options? [a-d1-9]|next steps?|(changes|is|are) needed|before i)\b",
    r"\b(should|could) (be|just|also|use|we)\b|^\W*(the )?fix is\b",
)
"""The model's idea of what to do, which nothing has become of yet."""
PRAISE = any_of(
    r"^\W*(you'?re (absolutely |completely )?right|great|perfect|excellent|good (catch|point|question|idea)|sure|done|"
    r"absolutely|got it|understood|i see|i understand|sorry|apologies|my apologies|ah,?|okay|ok|"
    r"nice)\b[^.]{0,40}[.!,]?\s*$"
)
VERDICT = any_of(
    r"\b(great|perfect(ly)?|excellent|successfully|solid|production-ready|ready (to|for)|looks good|as expected|"
    r"fully (functional|working)|absolutely|exactly what)\b"
)
"""The model judging its own work, which is no fact about the work."""
HEDGE = any_of(
    r"\b(maybe|perhaps|might|may be|could be|probably|likely|possibly|seems?|appears?|i think|i guess|i suspect|"
    r"not sure|"
    r"presumably|should be able|my (guess|hypothesis|assumption))\b"
)
DOUBT = any_of(r"\b(maybe|perhaps|might|may be|could be|possibly|probably|not sure|my (guess|hypothesis))\b")
"""Of a user, whose "I think" and "it seems" are no more than polite."""
LATER = any_of(r"\b(maybe later|at some point|some day|someday|for later|one day|eventually|out of scope|not now)\b")
COMPLAINT = any_of(r"\b(should|must)(n'?t| not| never) (\w+ )?happen\b|^\W*never ?mind\b")
"""About what happened, or what does not matter: nothing normative."""
FOR_NOW = any_of(r"\b(yet|(for|right|just) now|this time|(for|at) the moment)\b")
"""What makes also a rule one for this moment."""
NEGATIVE_REPLY = any_of(
    r"^\W*((no|nope|wrong|stop|wait)\b|that'?s (not|wrong)|not\b|still (not|fail|broken|doesn)|"
    r"it (still )?(doesn'?t|does not|isn'?t)|"
    r"i don'?t (think|want)|hm+|why (are|did|do) you|revert|undo)",
    r"\b(you'?re wrong|is wrong|was wrong|that'?s not|not what i)\b",
)
RETRACTION = any_of(
    r"\b((i was|was|were) wrong|my (earlier|previous|first|initial) (guess|assumption|hypothesis|claim|theory|"
    r"diagnosis)|"
    r"not the (cause|problem|issue|reason|culprit)|is innocent|had nothing to do|i misread|i was mistaken|ruled out)\b"
)
NORMATIVE_START = any_of(
    r"^\W*((ok(ay)?|yes|no|then|so|and|actually)\W+)*(let'?s|we('ll| will| should)) "
    r"(go with|use|keep|drop|stick|switch|move to|adopt)\b"
)
"""Begins like an order, and decides."""
IN_PLACE_OF = any_of(
    r"\b(?:instead of|rather than|no longer(?: (?:use|need))?|away from|stop using|drop|replac(?:e|ed|ing)|not|"
    r"don'?t use|never|undo|revert|remove[ds]?)\s+(?:the |a |an |any |use |using |in |on |with )*[`\"']?([\w./@-]+)"
)
"""What is given up, as its first word: "Postgres instead of *Redis*"."""
RETRACTED_MESSAGE = any_of(
    r"\b(scratch that|forget (that|it|what i)|never ?mind (that|it|what)|i was (wrong|mistaken)|my (mistake|bad)|"
    r"ignore (that|what i)|i take (that|it) back|(undo|revert) (that|it))\b|^\W*never ?mind\W*$"
)
"""A user retracts what they have just said."""
REPLACING = any_of(
    r"\b(changed my mind|on second thoughts?|after all|instead of|rather than|no longer|away from|stop using|"
    r"let'?s not|replaces?)\b|^\W*(no,? )?(wait,? )?actually\b"
)
"""A user sets something else than before."""
FINISHING = any_of(r"\bgit (commit|push|merge)\b|\btests? pass|\b[1-9]\d* passed\b")
FINISHED = any_of(r"\b(committed|pushed|merged|released|deployed)\b|\btests? (now )?pass")
"""What a tool does, and what the model says, when a piece of work is done."""
NEXT_THING = any_of(r"\W*((ok(ay)?|good|great|cool|nice)\W+)?(now|next)\W+(let'?s|we|i|can|could|please|the|for)\b")
"""A user turns to another thing: "now let's …"."""
IMAGE = re.compile(r"\W*\[image: [^\]]*\]\W*")
"""The mark that reading leaves in the place of an image."""
