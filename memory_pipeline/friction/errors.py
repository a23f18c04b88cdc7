"""Errors in the output of tools: the line that describes one, failures that the exit code hid, and problems of the
environment.

An error of the environment is recognised by its structure, regardless of the program: a part of the machine (a runtime,
a library, a credential, a daemon, a port) is missing, refused or of another version; an environment variable is not
set; the operating system gives a reason; or the program says what to install or log into. A failed assertion of a test
never counts.
"""

from __future__ import annotations

import re
from functools import lru_cache

import orjson

from memory_pipeline.agents.kit.tool_calls import commands_in
from memory_pipeline.text.regex import deferred

_COLOUR = deferred(r"\x1b\[[0-9;?]*[A-Za-z]")
_WRAPPING = deferred(
    r"^\s*(?:Chunk ID: .*|Wall time: .*|Process exited with code \d+|Original token count: .*|Output:|Exit code:? \d+|"
    r"Command exited with code \d+|Total output lines: .*|Script (?:completed|failed|error:?).*|\(no output\)|"
    r"<(?:/?(?:stdout|stderr|output|error))>|stdout:|stderr:|Error: Exit code \d+)\s*$",
    re.I | re.M,
)
"""The text that a harness puts around a tool's output."""
_MARKUP = deferred(r"</?tool_use_error>|^failed in sandbox \w+ with execution error: ", re.I)
_JSON_OUTPUT = deferred(r"^\s*\{\s*\"output\"\s*:")
_EXPLAINING = deferred(
    r"error|fail|denied|not found|refused|in use|cannot|can't|could not|couldn't|exception|invalid|missing|unknown|"
    r"no such|unable|fatal|conflict|undefined|unexpected|mismatch|required|not installed|timed? ?out|"
    r"timeout|no matches|unauthori[sz]ed|"
    r"forbidden|out of date|does not|doesn't|must |expected |does not exist|unsupported|not set|panic|abort",
    re.I,
)
_SUMMARY = deferred(
    r"task failed|exit(?:ed)?(?: with)? (?:status|code)|^make(?:\[\d+\])?: \*\*\*|npm err! (?:code|errno|path|command|"
    r"a complete log|lifecycle)|^\s*(?:\d+ )?(?:tests?|failed|failures?|errors?|passed)[:, ]*\d*\s*$|"
    r"\b\d{1,4} (?:failed|passed)\b(?!:)|"
    r"^(?:FAIL|ok|---|===|\[\w+\] ERROR)\b|command failed|^error:?$|^traceback|^\s*at |^\s*File \"|^warning|"
    r"found \d+ (?:errors?|problems?|warnings?)|elifecycle|short test summary|^npm warn|\b(?:INFO|DEBUG)\b:?\s|"
    r"^(?:checking|compiling|downloading|downloaded|installing|building) [\w.-]+ v?\d",
    re.I,
)
"""A line that reports a failure without its cause."""


_OF_A_SHELL = deferred(
    r"^(?:\(eval\)|(?:/bin/)?(?:ba|z|da)?sh|/bin/\w+): ?(?:line )?\d*:? ?.*(?:command not found|"
    r"no matches found|parse error|"
    r"no such file or directory|permission denied).*$|^\S+: command not found$|^find: .*: no such file or directory$",
    re.I | re.M,
)
MAX_ALONE = 3
"""Maximum lines of an output that is only an error message."""
MAX_HIDDEN = 1_500
"""Maximum characters of an output in which the shell's error message is searched."""


def hidden_error(text: str) -> str | None:
    """The shell's own error message in the output of a call that the harness reports as successful."""
    found = _OF_A_SHELL.search(_COLOUR.sub("", text[:MAX_HIDDEN])) if len(text) <= MAX_HIDDEN else None
    return found[0].strip() if found else None


def error_in(text: str) -> str | None:
    """The line of a failed tool's output that describes the error, verbatim; None if there is none."""
    lines = _lines(text)
    telling = [line for line in lines if _EXPLAINING.search(line)]
    specific = [line for line in telling if not _SUMMARY.search(line)]
    python = [line for line in specific if re.match(r"[\w.]*(?:Error|Exception)\b", line)]
    shell = hidden_error(text)
    alone = [line for line in lines if len(line.split()) > 2] if len(lines) <= MAX_ALONE else []
    for found in (python[-1:], [shell] if shell else [], specific[:1], [] if telling else alone[:1]):
        if found:
            return _MARKUP.sub("", found[0]).strip()
    return None


def errors_in(text: str) -> list[str]:
    """Every line of the output that describes an error, not merely that there was one."""
    return [line for line in _lines(text) if _EXPLAINING.search(line) and not _SUMMARY.search(line)]


def _lines(text: str) -> list[str]:
    lines = (line.strip() for line in _output_of(text).splitlines())
    return [line for line in lines if any(c.isalnum() for c in line)]


def _output_of(text: str) -> str:
    """The output of a tool without the text that its harness adds."""
    if _JSON_OUTPUT.match(text):
        try:
            text = str(orjson.loads(text)["output"])
        except (ValueError, KeyError, TypeError):  # it was cut
            text = text.replace("\\n", "\n")
    return _WRAPPING.sub("", _COLOUR.sub("", text))


_VERDICT = re.compile(
    r"^(?:--- FAIL: |FAIL(?:\t|$)|FAILED [\w./-]+::|\s*Tests?:? .*\b[1-9]\d* failed|"
    r"\s*Test (?:Files|Suites):? .*\b[1-9]\d* failed|=+ .*\b[1-9]\d* (?:failed|errors?)\b.* in [\d.]+|"
    r"test result: FAILED|error\[E\d{4}\]|error: could not compile|"
    r"[1-9]\d* (?:errors?|warnings? and [1-9]\d* errors?) generated|✖ \d+ problems? \([1-9]|Found [1-9]\d* errors?\b|"
    r"[1-9]\d* issues:$|\d+ examples?, [1-9]\d* failures?|\s+[1-9]\d* failing$|make(?:\[\d+\])?: \*\*\* |"
    r"npm (?:ERR!|error) |BUILD FAILED|Build FAILED|FAILURE: Build failed|\[ERROR\] BUILD FAILURE|"
    r"\[\S+\] ERROR task failed)|"
    r"^[\w@./\\-]+[:(]\d+[:,]\d+\)?: (?:fatal )?error\b",
    re.M,
)
"""Summary lines of test runners and compilers that report a failure although a pipe, `|| true` or a script hid the exit
code."""


def verdict_of_failure(text: str) -> str | None:
    """The line in which a test runner or a compiler reports its failure."""
    found = _VERDICT.search(text)
    return found[0].strip() if found else None


MAX_ERROR = 400
"""Maximum characters of a line that is searched for an error."""
_THING = r"[`'\"‘“]?(?P<thing>[\w@./:+-]*\w)[`'\"’”]?"
_NUMBER = r"v?\d+\.\d[\w.-]*"
_VARIABLE = r"[`'\"$({]*(?P<thing>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|PATH|HOME|DISPLAY)\b[`'\")}]*"
_ABSENT = (
    r"(?:(?:could|can|is|are|was|were|does|do)?(?: not|n't|not)(?: be| yet)? (?:found|installed|available|loaded|"
    r"located|supported?|running|reachable|accessible|trusted|executable|configured|enabled|exist|specified|set)|missing|"
    r"unavailable|expired|revoked|(?:was |were )?(?:refused|denied)|verification failed|absent|corrupt\w*)"
)
_FINDS_NO = (
    r"(?:(?:could not|couldn't|cannot|can't|can not|unable to|failed to) (?:find|locate|load|open|read|start|launch|"
    r"use|resolve)|no(?: such| valid| suitable| usable)?|missing|invalid|expired|unsupported|not compiled with)"
)
_MACHINE = (
    r"(?:executables?|binar(?:y|ies)|interpreter|compiler|(?:\w+ )?runtime|sdk|jdk|jre|toolchain|developer path|"
    r"(?:shared|dynamic|native|system) (?:librar(?:y|ies)|objects?|bindings?|binar(?:y|ies)|modules?|dependenc\w+)|"
    r"host system|gpus?|cuda(?: \w+)?|emulators?|devices?(?:/\w+)?|x? ?display|locale(?: setting)?|"
    r"(?:\w+ )?certificates?|(?:issuer|ca) cert\w*|credentials?|"
    r"(?:secret|private|public|ssh|host|signing|api|access) keys?|"
    r"(?:auth\w*|access|refresh|security|session|api|bearer|provided) tokens?|keychain|keyring|"
    r"daemon|socket|environment variables?|env vars?|package manager)"
)
_SETS_UP = r"(?:install(?:ing|ed)?|upgrad(?:e|ing)|log ?in|sign ?in|authenticat(?:e|ing)|configur(?:e|ing)|trust|allow)"

_LATER = r"(?:\+| or (?:newer|higher|later|above))"
_OUTSIDE = r"(?![`'\"]?(?:\.|/|@/|~/))"
"""A name that is not a path: paths are files of the project."""
_QUOTE = r"[`'\"‘“]"

_A_THING = (
    rf"(?:command not found|not found in path|unknown command or file):? {_THING}:?\s*$",
    r"(?:^|: |\s)(?!error:)(?P<thing>[\w@.+-]+): (?:command |program )?(?-i:not found)\b",  # HTTP says "Not Found"
    rf"{_THING}[:]? command not found",
    rf"'?{_THING}'? is not (?:installed|recognized as|(?:on|in) (?:your |the )?path)\b",
    rf"no module named {_THING}",
    rf"(?:could not|can't|cannot|unable to) (?:find|resolve|load|locate) (?:module|package|library|dependency) "
    rf"(?!or\b){_OUTSIDE}{_THING}",
    rf"(?:missing|optional|required|peer) dependency {_THING}",
    rf"(?:plug-?in|toolchain) {_THING} (?:is )?{_ABSENT}",
    rf"error while loading shared libraries: {_THING}",
    rf"library not (?:loaded|found)(?: for)?:? {_THING}",
    rf"(?:^|\s){_THING}: cannot open shared object",
    rf"(?:^|/)ld: cannot find {_THING}",
    r"['\"]?(?P<thing>[\w/.+-]+\.h(?:pp)?)['\"]?:? (?:file not found|no such file)",
    rf"\bspawn {_THING} (?:ENOENT|EACCES)",
    r"(?:no such file or directory|file not found|enoent)[^'\"]*['\"](?P<thing>[^'\"]+)['\"]",
    rf"(?:cannot access|can't (?:read|open|cd to)|cannot open|cannot stat) {_THING}",
    rf"no such file or directory: {_THING}",
    rf"{_THING}: no such file or directory",
    rf"(?:file|path) does not exist.*: {_THING}$",
    rf"\bfile {_QUOTE}{_THING} (?:was |is )?(?:not found|missing)",
    rf"{_QUOTE}{_THING} (?:\w+ )?(?:is |are |was |may |might )?not (?:be )?(?:installed|available|found) "
    r"(?:in|on|for|under)\b",
    r"\bnot (?:be |yet |been )?installed\b",
    rf"checking for {_THING}\.{{2,3}} no",
    rf"{_FINDS_NO} (?P<thing>[\w.+-]+)(?: \w+)? (?:package|installation|headers?|in (?:your |the )?\$?PATH)\b",
)
_A_VARIABLE = (
    rf"(?:environment variable|env(?:ironment)? var|variable) {_THING} (?:is |was )?"
    r"(?:not set|missing|undefined|required|unset|not defined|empty)",
    rf"(?:missing|required|undefined|unset)(?: required)? (?:environment variable|env(?:ironment)? var)s?:? {_THING}",
    rf"{_THING} (?:environment variable|env var)? ?(?:is|was) (?:not set|unset|not defined in the environment)",
    rf"{_THING}: (?:unbound variable|parameter not set)",
)
_IN_CAPITALS = (
    rf"{_VARIABLE}:? (?i:(?:environment )?(?:variable )?(?:is |was |has |must )?(?:not (?:set|defined|found|provided)|"
    r"(?:be |not been )?(?:set|defined|provided)|unset|missing|unbound|undefined|required|empty|field required|"
    r"an? (?:required|mandatory)|(?:is )?set to an? (?:invalid|wrong)|parameter (?:null or )?not set))",
    rf"{_VARIABLE} (?i:(?:environment )?variable (?:is |was )?(?:not|un))",
    r"(?i:(?:set|missing|define|export|requires?|required|unset|undefined|provide|find|found|with an?)"
    rf"(?: the| an?| your)?(?: required)?(?: env(?:ironment)? (?:var\w*))?:?) {_VARIABLE}",
    rf"(?i:\b(?:set|export|provide|define|specify|configure)(?: it)? (?:with|via|in|by|using|through|to)) {_VARIABLE}",
    rf"{_VARIABLE}.{{0,40}}(?i:\b(?:in|from|through) (?:the |your )?environment\b|\bexport(?:ed)?\b|"
    r"\benv(?:ironment)? var)",
    rf"KeyError: {_VARIABLE}\s*$",
    r"\b(?i:in|on) (?i:(?:your|the) )?\$?PATH\b",
)
_A_SERVER = (
    r"(?:port|address)\D{0,20}(?P<thing>\d{2,5})\D{0,40}(?:in use|allocated|taken|occupied)",
    r"(?::|port )(?P<thing>\d{2,5})\D{0,20} (?:failed: )?(?:port is )?already (?:in use|allocated)",
    r"eaddrinuse\D*(?P<thing>\d{2,5})",
    r"address already in use|(?:server|instance|process|daemon) is already running",
    r"(?:connection (?:was )?refused|could not connect|econnrefused|(?:connection|connect) to .{0,60} was refused)"
    r"\D*?(?:[\w.-]+:)?(?P<thing>\d{2,5})?",
    r"\b(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ECONNRESET)\b(?: (?P<thing>[\w.-]+(?::\d+)?))?",
    r"(?:ENOTFOUND|EAI_AGAIN|could not resolve host:?|name or service not known:?) ?(?P<thing>[\w.-]+)?",
    r"temporary failure in name resolution|no route to host|network is unreachable|"
    r"failed to establish a new connection",
    r"(?:can(?:no|')?t|could not|unable to|failed to) (?:connect to|reach|contact)(?: the| local| to)*"
    r" [`'\"]?(?P<thing>[\w./:-]*\w)",
    r"is the (?P<thing>\w+)(?: server| daemon)? running",
    r"(?P<thing>database|role) [\"'`][\w-]+[\"'`] does not exist",
    r"(?:profile|context|cluster) [\"'`(]*(?P<thing>[\w-]+)[\"'`)]* (?:could not be found|does not exist|not found)",
)
_A_VERSION = (
    rf"(?:requires?|needs?|expected|wants?) {_THING} (?:version )?(?:[<>=^~]+ ?)?{_NUMBER}.{{0,60}}"
    r"\b(?:got|found|have|but|current|installed|you|running)\b",
    rf"cannot import name .* from {_THING} \((?:installed|version|v?\d)",
    r"requires a different (?P<thing>\w+)|requires? (?P<other>\w+) ?[<>]+=? ?[\d.]+ ?\(running",
    r"engine \"?(?P<thing>\w+)\"? is incompatible",
    rf"(?P<thing>[\w.+-]+) (?:core |sdk )?version:? (?:is |was )?[`'\"]?(?:[<>=~^]+ ?)?{_NUMBER}.{{0,60}}"
    r"\b(?:but|required|requires?|needs?|not (?:installed|supported|found)|or (?:newer|higher|later|above)|because|"
    r"is too)\b",
    rf"requires? (?P<thing>[\w.+-]+) (?:sdk )?(?:version )?(?:[<>=~^]+ ?)?{_NUMBER}{_LATER}",
    rf"(?:supports?|requires?|needs?|wants?)(?: only| at least)? (?P<thing>[\w.+-]+) (?:[<>=~^]{{1,2}} ?){_NUMBER}",
    rf"{_NUMBER},? (?:or (?:newer|higher|later|above) is (?:needed|required)|(?:is )?(?:newer|older) than)\b",
    rf"\b(?P<thing>[\w.+-]+) {_NUMBER} (?:or (?:newer|higher|later|above)|is (?:required|needed|unsupported|too \w+))",
    rf"you are (?:using|running) (?P<thing>[\w.+-]+) (?:version )?{_NUMBER}",
    r"version [`'\"]?(?P<thing>[\w.+-]+)[`'\"]? (?:is )?(?:not (?:found|installed|available|supported))",
    r"(?:could not|couldn't|cannot|unable to) (?:find|locate|use) (?P<thing>[\w. -]+?) "
    rf"\(?(?:ver(?:sion|\.)? ?)?{_NUMBER}",
    r"unsupported (?:engine|version|(?P<thing>[\w.+-]+)(?: \w+){0,3} version)",
    r"(?P<thing>version) (?:mismatch|conflict)|incompatible (?:version|with)|"
    r"not compatible with (?:the )?(?:current|installed|your|this)|(?:not|yet) support your",
    r"no (?:version|default) is (?:set|configured)",
)
_A_RIGHT = (
    r"permission denied(?: \((?P<thing>[\w,-]+)\))?|\beacces\b|\beperm\b",
    r"(?P<thing>sandbox) (?:denied|blocked)|operation not permitted|read-only file system",
    r"not (?:logged|signed) in|must be (?:logged|signed) in|(?:please )?(?:run|use) [`'\"]?(?P<thing>[\w-]+) "
    r"(?:auth )?login|unauthori[sz]ed|bad credentials|re-?authenticat|login required|token (?:has |is )?expired|"
    r"expiredtoken|no (?:\w+ )?tokens? (?:for|found|set|given|provided|configured)\b|authentication (?:is )?"
    r"(?:failed|required)|password is required|terminal prompts disabled|\bE401\b",
    r"failed to sign|signing failed|host key verification|dubious ownership|(?:is|are) (?:blocked|not trusted)\b",
    r"certificate.{0,20}(?:verify failed|unknown authority|expired|self.signed)|unable to get local issuer",
    r"externally.managed.environment",
)
_A_MACHINE = (
    r"no space left on device|disk quota exceeded|too many open files|limit for number of file watchers|"
    r"cannot connect to the (?P<thing>docker) daemon",
    r"exec format error|bad cpu type|wrong elf class|incompatible architecture",
    rf"\b{_MACHINE}\b.{{0,40}}?\b{_ABSENT}",
    rf"\b{_FINDS_NO} (?:\S+ ){{0,3}}?{_MACHINE}\b",
    r"(?:please |must |need to |try |by running:? |with:? |run(?:ning)? )[`'\"]?(?:sudo )?(?:[\w.-]+ ){0,3}"
    rf"{_SETS_UP}\b",
)
_MACHINE_PATTERNS = (
    *(deferred(pattern, re.I) for pattern in _A_THING),
    *(deferred(pattern) for pattern in _IN_CAPITALS),
    *(deferred(pattern, re.I) for pattern in (*_A_VARIABLE, *_A_SERVER, *_A_VERSION, *_A_RIGHT, *_A_MACHINE)),
)
_ASSERTED = deferred(
    r"\bexpect(?:ed|ation)?\b.{0,80}?\b(?:to (?:be|equal|have|contain|match|eq)|but (?:got|was|received|found)\b)|"
    r"\.to[A-Z]\w+\(|^(?:assert|E  )\b",
    re.I,
)
"""A failed assertion of a test, whose values are no error of the environment."""
_VERSIONED = deferred(rf"{_NUMBER}|[<>]=")
_SETUP_COMMANDS = deferred(
    r"^(?:(?:pip3?|uv pip|pipx|brew|apt(?:-get)?|dnf|yum|apk|pacman|choco|winget|gem|cargo|rustup|go|snap|conda|"
    r"mamba|sdk|helm plugin|gh extension|npx playwright|playwright|corepack|nvm|fnm|n|asdf|mise|pyenv|rbenv|volta|jenv)"
    r" (?:install|add|use|enable|global|local|default|update|upgrade|target add|component add|prepare|trust)\b|"
    r"(?:npm|pnpm|yarn) (?:install|i|add) -g|npm (?:install|i) --global|source \S*activate|\. \S*activate|"
    r"(?:chmod|chown|ulimit|ssh-add|direnv allow|xcode-select|update-alternatives|locale-gen|modprobe)\b|"
    r"(?:systemctl|service|brew services|colima|minikube|pg_ctl|redis-server|podman machine)\b.*\b(?:re)?start\b|"
    r"docker(?:-compose| compose) up\b|(?:kill|pkill|fuser|killall) |"
    r"(?:gh|gcloud|aws|az|docker|npm|heroku|fly|vercel|huggingface-cli|kubectl)\b.*\b(?:login|configure|use-context)\b)",
    re.I,
)
"""Commands that set up a machine without changing code: install a program, start a service, log in, grant a
permission."""


@lru_cache(maxsize=10_000)
def drifting(error: str) -> tuple[str, str] | None:
    """The part of the environment that the error is about; None if the error is not about the environment."""
    error = error[:MAX_ERROR]
    if _ASSERTED.search(error) and not _VERSIONED.search(error):
        return None
    for pattern in _MACHINE_PATTERNS:
        found = pattern.search(error)
        if found:
            thing = next((v for k, v in found.groupdict().items() if v), "").strip().rsplit("/", 1)[-1].lower()
            return "thing" if thing else "state", thing
    return None


def sets_up(command: str | None) -> bool:
    """Whether the command changes the machine, not the code."""
    parts = [" ".join(part.words) for part in commands_in(command or "")]
    return any(_SETUP_COMMANDS.match(part) for part in parts) or (command or "").startswith("sudo ")
