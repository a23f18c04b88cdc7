"""The task is the last thing said that tells one: consent, thanks, praise and orders to commit do not."""

from memory_pipeline.sessions.windows import current_task
from memory_pipeline_tests.cases import each

PAGING = "Add paging to the list of parcels and test it."


@each(
    "later",
    [
        "ok",
        "ok, works, great",
        "Thanks, that's perfect!",
        "after that commit push",
        "please commit this to main with a good message and push it",
        "Ja, danke. Mach weiter.",
        "merci, ça marche",
        "好的，谢谢",
        "继续",
        "提交并推送",
        "ありがとうございます",
        "",
    ],
)
def test_what_only_closes_is_no_task(later: str) -> None:
    assert current_task([later, "yes", PAGING, "Find out why the queue overflows."]) == PAGING
    assert current_task([later]) is None


@each(
    "later",
    [
        "ok, now show the weight of each parcel",
        "Great. Commit that. Then the depot has to be shown on the map.",
        "commit message format should include ticket numbers everywhere",
        "Jetzt bitte die Zahlungen auf Postgres umstellen",
    ],
)
def test_what_tells_a_task_counts_whatever_it_begins_with(later: str) -> None:
    assert current_task([later, PAGING]) == later


def test_of_short_words_alone_those_that_say_most_are_the_task() -> None:
    assert current_task(["thanks", "Fix it", "Fix the tests", "ok"]) == "Fix the tests"
    assert current_task(["No, this one", "Fix it"]) == "No, this one"  # of equals the last
    assert current_task([]) is None
