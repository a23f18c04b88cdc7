"""Patterns of pasted text and of the user's own words, for `quoting`; each is matched against one line or paragraph."""

from __future__ import annotations

import re

from memory_pipeline.text.regex import deferred

MACHINE = deferred(
    "|".join(
        (
            r"\s*>(?=.*\w)",  # a quotation
            # stack traces: Python, JavaScript and Java, Go, Rust
            r"Traceback \(most recent|\s+File \"[^\"]+\", line \d|\s*at (async )?[\w$.<>\[\]/ ]{1,120} ?\(.*[:)]",
            r"\s*at ((?!\d+:)\S+:\d+|file:|node:)|Caused by:|goroutine \d+ \[|panic: |thread '.*' panicked|\s+\d+: 0x",
            r"\s*(Uncaught )?[\w.]*(Error|Exception|Panic)( \[\w+\])?: |\s*[\^~]+\s*$|\s*\d+ [|│]",
            r"Exception in thread |node:\w+:\d+|Node\.js v\d",
            # prompts of shells and of Windows
            r"\s*(\(\S+\) )?([\w.-]+@[\w.-]+[: ]\S*\s?|[~/][\w./-]*\s?)?\$ +[a-zA-Z./~]|\s*(\S+ )?[❯➜](\s|$)|>>> ?\S",
            r"\s*(\(\S+\) |PS )?[A-Za-z]:\\[^>]*>",
            # logs
            r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d[\] ,.]|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d ",
            r"\s*\[?(ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL)\b[\]: |]",
            r"\[(?!redacted|image)[\w .:-]{2,30}\] \S",
            r"(error|warning|fatal|remote|hint)(\[\w+\])?: |(npm|yarn|pnpm) (ERR!|WARN|error|notice)|\s*--> \S",
            r"[\w./-]+: (cannot|command not found|no such|fatal|unknown|unrecognized|permission denied|line \d)",
            r"unknown (command|option)|Did you mean\b",
            r".*\(os error \d+\)|.*: (command not found|No such file or directory)\s*$",
            # builds, tests and git
            r"\s*[✓✔✗✘✖×●○√⠀-⣿]\s|(\S+ )?(PASS|FAIL|PASSED|FAILED)(\s|$)|[=#*_-]{3,} .*[=#*_-]{3,}\s*$",
            r"(running|collected) \d+ (test|item)|test \S+ \.\.\.|--- (PASS|FAIL|SKIP)|\s*(Tests?|Test Suites):? +\d+ ",
            r"\d+ (passed|failed)\b|\s+(Compiling|Finished|Running|Checking|Downloading) \S|make(\[\d+\])?: ",
            r"\s*create mode \d|\s*\d+ files? changed|\[\S+ (\(\S+\) )?[0-9a-f]{7,}\]|commit [0-9a-f]{7,40}\s*$",
            r"Process (completed|exited)|[A-Za-z_-]*exit code:? \d|.*[│┌┐└┘├━╭╰]|\s*[─═]{3,}|\s*\S+\s+\|\s+\d+ [+-]+$",
            # diffs, also as a terminal shows them
            r"diff --git |index [0-9a-f]+\.\.|--- a/|\+\+\+ |@@( |$)|\s*\+\s?\d+(\s|$)|-\d+\s|(new|deleted) file mode",
            # hits of a search, messages of compilers, tables, markup and data
            r"\s*[\w./\\-]+\.\w{1,5}:\d+:(\d+:?)?\s?\S|\s*[\w./\\-]+\.\w+\(\d+,\d+\): |\s*\|.*\|\s*$",
            r"\s*</?[A-Za-z][\w:.-]*(\s[^<>]*)?/?>|<\?xml|\s*[{\[]\s*([\"{\[].*)?$|\s*[}\])]+[,;]?\s*$",
            r"\s*\"[^\"]+\"\s*:\s*[\"\d\[{tfn-]|.*[\"\d\]]}+\s*$",
            r"(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) /?\S+ HTTP/|HTTP/[\d.]+ \d{3}|(Content-Type|Authorization|"
            r"Accept|Host|User-Agent|Set-Cookie|Cache-Control|X-[\w-]+): \S",
            # code and SQL
            r"SELECT .*|INSERT INTO .*|UPDATE \S+ SET.*|DELETE FROM .*|(CREATE|ALTER|DROP) (TABLE|INDEX|VIEW) ",
            r"\s*(//|/\*|#!)|\s*(import [\w.]+|import .* from .*|from \S+ import .*|#include.*)$",
            r"\s*(async )?(def|function|func|fn) \w+ ?[(<]",
            r"\s*(export )?(default )?class \w+( (extends|implements) .*)?\s*[({:]",
            r"\s*(export )?(const|let|var) \w+.*=|\s*(public|private|protected) [^.]*[={(;]\s*$",
            r"\s*return .*[;)\]}]\s*$|\s+(if|for|while|elif) .*:\s*$|\s+\w[\w.]*\(.*\)$",
            r"(?!.*`|([^\W\d]+[ ,]+){4})(.*[=()\"'>].*;|.*\{)\s*$",
        )
    )
)
"""The beginning of a line that nobody types in a message."""
PROMPT = deferred(r"\s*(\(\S+\) )?(\S+ )?([$❯➜]\s|(PS )?[A-Za-z]:\\[^>]*>)|[^ ]*\$ \w")
"""A prompt line of a terminal, followed by the output of the command."""
SIGNED = deferred(r"[+-](?![+-])")
LIST_ITEM = deferred(r"\s*([-*•+]|\d{1,2}[.)])\s")
ROW = deferred(r"[^,\t;]*([,\t;])\S")
"""A line of values, with their separator."""
WORD = deferred(r"[^\W\d_]{2,}")
FENCE = deferred(r"\s*(`{3,}|~{3,})[^`]*$|.*[\s:](`{3})\w*\s*$")
COLON = deferred(r"(?::\s+|：\s*)(?=\S)")
HEAD = deferred(r"[^:\n]{8,160}:\s+(?=[A-Z`])")
"""The words that announce a paste within the same line."""
IMAGE = deferred(r"\[image: [^\]\n]{0,200}\]")
QUOTATION = deferred(r'(?:^|(?<=: ))(?:"[^"\s][^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»)(?=[.,]?[ \t]*$)', re.MULTILINE)
"""Marks of quotation around whole lines."""
PARAGRAPH = deferred(r"\S[^\n]*(?:\n[^\S\n]*[^\s][^\n]*)*")

PERSONAL = deferred(
    r"\b(I|i(?! [A-Z])|I['’](m|d|ve|ll)|im|i['’](m|d|ve|ll)|my|me|we|we['’](re|ve|ll|d)|let['’]?s|"
    r"(can|could|would) you|pls|plz|wtf|btw)\b|[?？]\s*$|[我你您吗嗎]"
)
"""Words of people who talk about themselves or to the agent, which machines and reviewers rarely use."""
SELF = deferred(
    r"\b(I|i(?! [A-Z])|[Ii]['’](m|d|ve|ll)|im|my|me|(can|could|would) you|please|pls|plz|wtf|btw)\b|"
    r"[?？]\s*$|[我你您吗嗎]"
)
"""First person singular; documents also say "we" and "our"."""
WISH = deferred(
    r"\b[Ii](['’](m|d|ve|ll))?\s+(want|need|like|think|would|prefer|expect|don['’]?t)\b|\b[Pp]lease (do|use)\b"
)
"""Words that show that the user wrote a document with headings."""
ORDER = deferred(
    r"\s?([a-z'’]+ ){2,}[a-z'’]+([\s.,:]|$)|(?i:always|never|don['’]?t|do not|use|from now on|make sure)\b"
)
"""Typed in lower case, or an order."""
HEADING = deferred(r"#{1,6} \S")
TITLE = deferred(r"(?![a-zß-ÿ\s]|[-*•+>|]|\d+[.)]\s)[^\n.,:;?!。，：；？！`]{3,80}[ \t]*")
"""A line that could be a heading: short, without punctuation at its end, and not beginning in lower case or as a list
item."""
_LABEL = (
    r"(?!(?i:expected|actual|before|after|old|new|notes?|todo|error|input|output|request|response|question|answer|"
    r"problem|solution|issue|fix|given|when|then|pros?|cons?|current|desired|yes|no|good|bad|do|don['’]t|wrong|right|"
    r"example|step|reason|result|file|path|url|tests?|name|title|description|type|status|if|else|https?)\b)"
)
"""Labels before a colon that are not names."""
_NAME = r"[^\W_][\w.'’-]*(?: [^\W_][\w.'’-]*){0,2}"
_CLOCK = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? )?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm]\b)?"
TURN = deferred(
    rf"[ \t]*(?P<time>\[?{_CLOCK}\]?(?: ?-)? +)?"
    rf"(?:[*_]{{0,2}}{_LABEL}(?P<name>@?(?(time)|(?=[^\W_a-zß-ÿ])){_NAME})[*_]{{0,2}}(?: said)?[:：]"
    r"[*_]{0,2}(?:\s|$)|"
    rf"<[@+]?(?P<nick>[\w.-]{{2,30}})> )|"
    rf"[ \t]*(?P<who>{_NAME})(?P<later>,? +(?:\[|— |- )?(?:Today at |Yesterday at |APP )?{_CLOCK}\]?)[ \t]*$",
    re.MULTILINE,
)
"""The beginning of a message in a chat: Slack, Discord, Telegram, WhatsApp, IRC, or names alone."""
_QUOTED = (
    r"(?:\"(?P<a>[^\"\n]{8,600})\"|“(?P<b>[^”\n]{8,600})”|„(?P<c>[^“”\n]{8,600})[“”]|"
    r"«(?P<d>[^»\n]{8,600})»|「(?P<e>[^」\n]{4,600})」|[‘'](?P<f>(?:[^'’\n]|(?<=\w)['’](?=\w)){8,600})['’](?!\w))"
)
_SAYS = (
    r"\b(?:says?|said|states?|stated|reads|wrote|writes|tells? (?:me|us|you)|"
    r"told (?:me|us)|recommends?|insists?|claims?|suggests?|demands?|according to [^\"“”'\n:]{1,60})(?: that\b)?"
)
_SAYS_ELSEWHERE = (
    r"(?:\b(?:sagte?|schreibt|schrieb|steht|heißt es|meint|laut|dit|disent|écrit|indique|précise|selon|dice|dicen|dijo|"
    r"pone|escribe|indica|según|diz|disse|scrive|secondo)\b|[说說写寫]着?道?|示)[^\"“”„«「'\n:：]{0,40}"
)
REPORTED = (
    deferred(rf"{_SAYS}\s*[:,]?\s*{_QUOTED}"),
    deferred(rf"{_SAYS_ELSEWHERE}[:：,，]?\s*{_QUOTED}"),
    deferred(rf"{_QUOTED}\s*(?:と(?:書|言|い)|,? (?:says?|said|wrote|writes|reads) (?!I\b|we\b))"),
    deferred(
        r"(?i)\b(?:read ?me|docs?|documentation|page|web ?site|article|(?:blog )?post|guide|manual|wiki|tutorial|"
        r"e?mail)(?:\.\w+)? (?:says?|said|states?|stated|reads|recommends?|tells? (?:me|us|you))(?: that\b| to\b|:|,)? "
        r"(?!why\b|what\b|how\b|when\b|which\b|where\b|who\b|whether\b|if\b|[\"'“‘„«])"
        r"(?P<words>[^\n]{12,600}?)(?=[.!?](?:\s|$)|[,;] (?:so|but|and|please|can)\b|$)",
        re.MULTILINE,
    ),
)
"""The speaker and the reported words: in quotation marks, or to the end of the sentence in a document."""
OWN_SAYING = deferred(r"\b(?:[Ii]|[Ww]e)(?:['’]\w+)?(?: \w+){0,3} $")
"""The words before the verb if users quote themselves."""
MAIL = deferred(
    r"(From|To|Cc|Subject|Sent|Date|Von|An|Betreff): \S|On .{6,80} wrote:\s*$|-+ ?(Forwarded|Original) [Mm]"
)
OUTPUT_FOLLOWS = deferred(
    r"(?i).*\b(error|output|logs?|stack ?trace|traceback|response|console|terminal)( (is|was|says|here|below))?\s*:\s*$"
)
REVIEW_FOLLOWS = deferred(
    r"(?i)[^:\n]{0,200}\b(feedback|review|reviewer|comments? (from|by|on)|findings|coderabbit(ai)?|copilot|bugbot|"
    r"codex|greptile|sonar)\b[^:.?!\n]{0,60}:(\s|$)"
)
REVIEW = deferred(
    r"(?i)\W*(low|medium|high|critical) severity\W*$|.*\bcoderabbitai\b|.*chatgpt-codex-connector|"
    r".*copilot-pull-request|"
    r"\W*_?(⚠️|🛠️|🧹|💡|🔴|🟠|🟡) ?_?(potential issue|refactor suggestion|nitpick|codex review|verification)|"
    r"[-*\s]*(<\w+>)*!?\[P[0-3]\b|\*\*P[0-3]\b|P[0-3] badge\b|\*\*suggest(ion|ed (change|fix))\W*\*\*|"
    r"suggested change\s*$|"
    r"[-*\s]*around lines? \d+|copilot( ai)?\b.* ago\s*$|.*\b(commented|reviewed|left a (comment|review))\b.* ago\s*$|"
    r"comment on lines? \+?\d+|in `?@?[\w./-]+\.\w+`? (around|at|on) lines? \d+|`?\d+-\d+`?: \S.*[a-z]|"
    r"actionable comments posted|\W*code review (for|of)\b|useful\? react with|.*\breviewed commit\b|"
    r"\W*nitpick comments|\W*committable suggestion|(🔍|🚨|📋) \w|\W*prompt for ai agents"
)
"""Marks in comments of CodeRabbit, Copilot, Codex, Bugbot and others."""
FINDING = deferred(
    r"(?i)\b(consider (using|adding|moving|replacing|implementing|renaming|extracting)|this (can|could|may|might|will|"
    r"would|causes?|means|leads?|results?|inconsistency|duplication|assumes|eliminates|makes|ensures)|incorrectly|"
    r"inconsisten\w+|potential(ly)?|unreachable|redundant|duplicated?|appears to be|will (never |not )?be|"
    r"(can|could|may) (still|panic|fail|lead|cause|drop)|causing|resulting in|risking|without (this|checking)|assumes|"
    r"doesn['’]t (distinguish|handle|check)|need to stay|should be explicitly|won['’]t affect|"
    r"for consistency|would be (more|better|safer|cleaner))\b"
)
"""Words with which a reviewer describes a fault."""
