"""Whether rules, decisions, corrections, questions, requests and statements are told apart, per language.

    python -m benchmarks.languages [--all] [--wrong]

The sentences of `languages/` were written before any cue, as engineers type to agents, 15 per role. To the errors in
every second one the cues were adjusted; the figures are of the others, or with `--all` of all. One hand wrote both. The
baseline takes each text for English, as was done before. A correction may be found as a rule: both end in the same
places.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

from benchmarks.common import parser
from memory_pipeline.text import kinds
from memory_pipeline.text.kinds import is_passing, kind_of_user
from memory_pipeline.text.languages.identify import english

FOLDER = Path(__file__).parent / "languages"
ROLES = {
    "rule": ("rule", "preference"),
    "decision": ("decision", "state_change"),
    "correction": ("correction", "rule", "preference"),
    "question": ("question",),
    "request": ("request",),
    "statement": ("statement", "progress", "convention", "root_cause"),
}
"""Which answers are right for a role."""


def sentences(language: str) -> Iterator[tuple[int, str, str]]:
    """Number within its role, role, sentence."""
    role, number = "", 0
    for line in (FOLDER / f"{language}.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            role, number = line[2:], 0
        elif line:
            yield number, role, line
            number += 1


def answer(text: str) -> str:
    kind = kind_of_user(text)
    return "request" if kind not in (*kinds.RULES, "question") and is_passing(text) else kind


def english_only(text: str) -> str:
    with (
        patch("memory_pipeline.text.kinds.cues_of", return_value=english()),
        patch("memory_pipeline.text.kinds.cues_of", return_value=english()),
    ):
        return answer(text)


def figures(language: str, judge: Callable[[str], str], *, everything: bool, wrong: bool = False) -> str:
    found = [(r, judge(s), s) for n, r, s in sentences(language) if everything or n % 2]
    parts = []
    for role, right in ROLES.items():
        hits = sum(r == role and a in right for r, a, _ in found)
        said = sum(r == role for r, _, _ in found)
        named = [r == role or (role == "rule" and r == "correction") for r, a, _ in found if a in right[:2]]
        if role == "correction":
            named = [r == role for r, a, _ in found if a == "correction"]
        parts.append(f"{hits / said:6.2f}/{sum(named) / len(named) if named else 1:4.2f}")
    if wrong:
        parts += [f"\n      {r} as {a}: {s}" for r, a, s in found if a not in ROLES[r]]
    return " ".join(parts)


def main() -> None:
    options = parser("languages", __doc__)
    options.add_argument("--all", action="store_true", help="of all sentences, also those that were looked at")
    options.add_argument("--wrong", action="store_true", help="also what was taken for something else")
    asked = options.parse_args()
    print("recall/precision    " + "".join(f"{role:>12}" for role in ROLES))
    for path in sorted(FOLDER.glob("*.txt")):
        print(f"{path.stem}: English cues    ", figures(path.stem, english_only, everything=asked.all))
        print(f"{path.stem}: by its language ", figures(path.stem, answer, everything=asked.all, wrong=asked.wrong))


if __name__ == "__main__":
    main()
