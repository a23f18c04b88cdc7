"""A short acceptance is a decision only together with the proposal that it answers."""

from datetime import UTC, datetime, timedelta

from memory_pipeline.observations.evaluation import missing_evidence
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Fact, WindowMessage
from memory_pipeline_tests.cases import each

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
FILLER = ["assistant: Let me look at the configuration to see what is there, and then at the logs of it."] * 12
"""Plans, which are never kept, and which buy room for everything else."""
PROPOSAL = "Should I keep the single Postgres instance and do nothing about the replica until the traffic doubles?"


def talk(*turns: str) -> list[WindowMessage]:
    parts = [turn.split(": ", 1) for turn in [*FILLER, *turns]]
    return [
        WindowMessage(f"m{i - len(FILLER)}", role, START + timedelta(minutes=i), text)
        for i, (role, text) in enumerate(parts)
    ]


def decisions(said: list[WindowMessage]) -> list[Fact]:
    """The facts of two places, with what they must always be."""
    segments = ExtractiveObserver(0.5).observe(said)
    found = [f for s in segments for f in s.facts if len(f.evidence) > 1]
    texts = {m.message_id: m.text for m in said}
    for fact in found:
        evidence = [{"message_id": s.message_id, "start": s.start, "end": s.end} for s in fact.evidence]
        row = {"text": fact.text, "evidence": evidence, "observer": "extractive-4-lexical"}
        assert missing_evidence(row, texts) is None
        assert (fact.kind, fact.trust) == ("decision", "user")
    return found


@each("answer", ["ok, do nothing", "yes", "Proceed.", "sounds good", "agreed, thanks"])
def test_consent_is_kept_with_what_it_consents_to(answer: str) -> None:
    said = talk("user: the replica lags", f"assistant: It lags by two seconds. {PROPOSAL}", f"user: {answer}")
    (fact,) = decisions(said)
    assert fact.text == f"{PROPOSAL} {answer}"
    assert [s.message_id for s in fact.evidence] == ["m1", "m2"]
    assert fact.observed_at == said[-1].said_at


def test_a_number_means_the_item_that_bears_it() -> None:
    options = (
        "assistant: There are two ways:\n\n1. Keep the lock in Redis with a timeout of 30 s.\n2. Move it to Postgres."
    )
    (fact,) = decisions(talk("user: the lock is lost", options, "user: go with 2"))
    assert fact.text == "Move it to Postgres. go with 2"


@each("answer", ["I like option B", "go with number b", "ok, option b then"])
def test_an_option_may_be_chosen_within_a_sentence(answer: str) -> None:
    options = (
        "assistant: Two ways:\n\n### Option A: a lock in Redis\n\nFast.\n\n### Option B: a row in Postgres\n\nSafe."
    )
    (fact,) = decisions(talk("user: the lock is lost", options, f"user: {answer}"))
    assert fact.text == f"Option B: a row in Postgres {answer}"


def test_a_bare_question_is_kept_with_the_sentence_before_it() -> None:
    text = "assistant: I would move the lock to Postgres, since it survives a restart. Shall I?"
    (fact,) = decisions(talk("user: the lock is lost", text, "user: yes"))
    assert fact.text.startswith("I would move the lock to Postgres")


@each(
    ("proposal", "answer"),
    [
        ("Would you like me to commit these changes?", "yes"),  # done when it is done
        ("Should I run the tests again?", "ok"),
        ("The replica lags by 2 s.", "ok"),  # nothing was proposed
        (PROPOSAL, "no"),
        (PROPOSAL, "why?"),
        (PROPOSAL, "what is the replica for, and who reads from it in the nightly reports?"),  # not short
    ],
)
def test_other_answers_are_no_decision(proposal: str, answer: str) -> None:
    assert decisions(talk("user: the replica lags", f"assistant: {proposal}", f"user: {answer}")) == []


def test_an_answer_to_someone_before_is_none() -> None:
    said = talk(f"assistant: {PROPOSAL}", "user: how much does it lag?", "user: ok")
    assert decisions(said) == []


@each("answer", ["可以，这样的话备份还有必要保留吗", "资料库的连线数量", "请读取日志"])
def test_what_is_no_consent_in_chinese_answers_nothing(answer: str) -> None:
    proposal = "已确认问题出在磁盘空间不足。您要我把数据库的备份移到另一个磁盘，并且每周清理一次旧的文件吗？"
    said = talk(
        "user: 数据库为什么这么慢，请帮我找出原因并且告诉我怎么解决", f"assistant: {proposal}", f"user: {answer}"
    )
    assert decisions(said) == []


def test_what_only_announces_proposals_is_none() -> None:
    proposal = "如需，我可以：\n\n- 把备份移到另一个磁盘\n- 每周清理一次旧的文件\n\n需要我现在就提交这两个补丁吗？"
    said = talk(
        "user: 数据库为什么这么慢，请帮我找出原因并且告诉我怎么解决", f"assistant: {proposal}", "user: 可以，开始"
    )
    assert [f.text for f in decisions(said)] == ["需要我现在就提交这两个补丁吗？ 可以，开始"]


def test_consent_in_another_language_answers_too() -> None:
    proposal = "已確認問題出在磁碟空間不足。您要我把資料庫的備份移到另一個磁碟機，並且每週清理一次舊的檔案嗎？"
    said = talk("user: 資料庫為什麼這麼慢，請幫我找出原因並且告訴我怎麼解決", f"assistant: {proposal}", "user: 好")
    (fact,) = decisions(said)
    assert fact.text.endswith("嗎？ 好")
    assert fact.flags == ()
