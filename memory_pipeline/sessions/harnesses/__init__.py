"""The harnesses whose sessions can be read. To add one, write its module and add it to `HARNESSES`.

A harness's module has
- `HARNESS`: its name,
- `default_roots(home, env)`: the directories where it keeps sessions,
- `recognises(record)`: whether a file that begins with this record (a dict) is one of its sessions,
- `SHAPE`: the fields that are read of a record,
- `Reader(transcript)`: with `record(line, record)`, called for every record in order, and `finish()`, which gives the
  session as far as it was read and may be called again after more records.

A harness whose sessions are not files of JSON lines has also
- `records(source, problems)`: the records of one session, each with its line or number,
- `images_of(record)`: the images in such a record, in the order in which `Image.block` counts them,
and one whose sessions are not files at all
- `claims(folder, names)`: the sessions in a folder with these entries and the names of those that are none of its
  business, or None where the folder is not its own.
"""

from __future__ import annotations

from types import ModuleType

from memory_pipeline.sessions.harnesses import pi
from memory_pipeline.sessions.harnesses.claude_code import reader as claude_code_reader
from memory_pipeline.sessions.harnesses.codex import reader as codex_reader
from memory_pipeline.sessions.harnesses.gemini import reader as gemini_reader
from memory_pipeline.sessions.harnesses.opencode import reader as opencode_reader

HARNESSES: tuple[ModuleType, ...] = (
    pi,
    claude_code_reader,
    codex_reader,
    gemini_reader,
    opencode_reader,
)
