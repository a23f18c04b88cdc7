"""What of a Markdown file is a line for MEMORY.md."""

from __future__ import annotations

from memory_pipeline.operations.importing.lines import lines_in

CASES = (
    # text, its lines by number
    ("- Use pnpm.\n- Never use npm.\n", {1: "Use pnpm.", 2: "Never use npm."}),
    ("# Rules\n\nNever push to main.\n", {3: "Never push to main."}),
    ("1. Run the linter\n2. Run the tests\n", {1: "Run the linter", 2: "Run the tests"}),
    ("- A rule that goes\n  on in a second line.\n", {1: "A rule that goes on in a second line."}),
    ("One paragraph about bricks.\n\nAnother about clay.\n", {}),
    (f"A long paragraph {'of many words ' * 30}.\n", {}),
    ("Kilns are hot.\n\n- Wear gloves at the kiln.\n", {1: "Kilns are hot.", 3: "Wear gloves at the kiln."}),
    ("```sh\nmake test\n```\n\n~~~\nmake\n~~~\n", {}),
    ("1. Run this code:\n\n    ```sh\n    make test\n    ```\n", {}),
    ("| a | b |\n|---|---|\n| one | two |\n", {}),
    ("- Commands:\n  - Build with `make build`.\n", {2: "Build with `make build`."}),
    (
        "The password of the kiln is:\n- swordfish9 everywhere\n",
        {},
    ),
    ("For Python code:\n- use ruff\n", {2: "For Python code: use ruff"}),
    ("Never\n- push bricks to main\n", {2: "Never: push bricks to main"}),
    ("## Don't\n- push bricks to main\n", {2: "Don't: push bricks to main"}),
    ("## Don't\n- Never push bricks to main\n", {2: "Never push bricks to main"}),
    ("## 禁止\n- 直接推送到主分支上\n", {2: "禁止: 直接推送到主分支上"}),
    ("## Bricks\n- lay them by hand\n", {2: "lay them by hand"}),
    (
        "- If a kiln fails:\n  - Never:\n    - open its door\n",
        {3: "If a kiln fails: Never: open its door"},
    ),
    ("- Use pnpm for bricks.\n  - only those in web\n", {1: "Use pnpm for bricks."}),
    (
        "- Tiles\n  - bake them at noon\n- Clay is dug by hand.\n",
        {2: "bake them at noon", 3: "Clay is dug by hand."},
    ),
    (
        f"Before you {'lay and bake and ' * 6} do this:\n- Dig the clay\n",
        {},
    ),
    (
        "- [Bricks](bricks.md) — how we lay them\n- **[Clay](clay.md)**\n- @docs/tiles.md\n",
        {},
    ),
    ("- [ ] lay the bricks\n- [x] dig the clay\n", {}),
    ("- pnpm\n- `make test -x`\n", {}),
    ("# CLAUDE.md\n\nThis file provides guidance to agents.\n", {}),
    ("> Somebody said it of bricks.\n", {}),
    ("<details>bricks and clay</details>\n", {}),
    ("- ~~Use npm for bricks.~~\n", {}),
    ("- Which kiln do we use?\n", {}),
    ("- Maybe we could use another kiln.\n", {}),
    ("- Upload with [redacted:aws-key:1a2b3c].\n", {}),
    ("- Ask [private] about bricks.\n", {}),
    ("<!-- a note\n- Not a line of ours.\n-->\n- Use pnpm.\n", {4: "Use pnpm."}),
    ("---\nname: bricks and clay\n---\n\n- Use pnpm.\n", {5: "Use pnpm."}),
    (
        "Never mock the kiln.\n\n**Why:** It burnt once.\n\n**How to apply:** In all tests.\n",
        {1: "Never mock the kiln."},
    ),
    ("Never mock the kiln.\n**Why:** It burnt once.\n", {1: "Never mock the kiln."}),
    ("- (2025-03-05) Use pnpm. <!-- p-20250305-001 -->\n", {1: "Use pnpm."}),
    (
        "<!-- memory:connect-lines 0123456789ab -->\n- Ours it is.\n<!-- /memory:connect-lines -->\n- Use pnpm.\n",
        {4: "Use pnpm."},
    ),
    ("<claude-mem-context>\n- What it did lately.\n</claude-mem-context>\n- Use pnpm.\n", {4: "Use pnpm."}),
)


def test_which_forms_are_lines() -> None:
    failed = []
    for text, lines in CASES:
        found = lines_in(text)
        if {line.number: line.text for line in found} != lines:
            failed.append(f"{text!r}: {found}")
    assert not failed, "\n".join(failed)


def test_a_line_knows_its_heading_and_the_project_that_its_note_names() -> None:
    (line,) = lines_in("## Hard Rules\n- Never fire it above cone six. (project: kiln)\n")
    assert (line.text, line.heading, line.project) == ("Never fire it above cone six.", "Hard Rules", "kiln")


def test_nothing_hidden_is_kept() -> None:
    (line,) = lines_in("- Use\u200b pnpm\u202e now.\n")
    assert line.text == "Use pnpm now."
