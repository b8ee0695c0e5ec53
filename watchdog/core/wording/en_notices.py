"""What the watchdog says about itself, in English.

Braces are the notice's params, `subject`, `source`, `task`, `rule`, and the times `since`, `until`
and `duration`. A text whose braces cannot all be filled is left out; params that no text uses are
listed below it.
"""

from collections.abc import Mapping

from watchdog.core.alerts import NoticeKind
from watchdog.core.wording.shape import NoticeText

NOTICES: Mapping[NoticeKind, NoticeText] = {
    NoticeKind.SOURCE_BLIND: NoticeText(
        title=(
            "cannot read {capability} of {task} ({source}): {failure}",
            "cannot read {capability} of {source}: {failure}",
            "cannot read {subject}",
        ),
        body=(
            "{source} has given no usable answer for {capability} since {since} ({duration}): {failure}.",
            "It said: {detail}",
            "Concerned: {task}.",
            "Until it can be read again, what depends on it neither fires nor recovers.",
        ),
        over_title=(
            "sees {capability} of {task} ({source}) again",
            "sees {capability} of {source} again",
            "sees {subject} again",
        ),
        over_body=(
            "Blind from {since} to {until} ({duration}): {failure}.",
            "Alerts that were held still are judged again.",
        ),
    ),
    NoticeKind.NOT_WATCHING: NoticeText(
        title=("was not watching from {from} to {to}", "was not watching for {gap}", "was not watching"),
        body=(
            "Nothing was evaluated from {from} to {to} ({gap}).",
            "Why: {reason}",
            "What began and ended in between may have gone unseen.",
            "Logs are read on from where reading stopped.",
        ),
    ),
    NoticeKind.CLOCK_JUMPED: NoticeText(
        title=("the clock jumped by {by}", "the clock jumped"),
        body=(
            "This machine's clock went from {from} to {to}.",
            "Nothing fires or closes because of the jump.",
            "If it was asleep, nothing was evaluated for {gap}: what began and ended then may be unseen.",
        ),
    ),
    NoticeKind.CHANNEL_BROKEN: NoticeText(
        title=("channel {channel} takes no messages", "channel {subject} takes no messages"),
        body=(
            "{failures} attempts in a row failed.",
            "Messages given up so far: {lost}. What is given up from now on is counted, not told one by one.",
            "The last answer: {answer}",
            # `.0`: said only where it is so, without saying the number again.
            "{failures:.0}Its messages wait and are tried again.",
        ),
        over_title=("channel {channel} takes messages again", "channel {subject} takes messages again"),
        over_body=(
            "It took none from {since} to {until} ({duration}).",
            "Messages given up: {lost}. `watchdog history` shows what they were about.",
            "{failures:.0}What waited is being delivered.",
        ),
    ),
    NoticeKind.UNDELIVERED: NoticeText(
        title=(
            "channel {channel} was removed with {messages} undelivered message(s)",
            "channel {channel} was not told of {rule} · {task}",
            "channel {channel} was not told of {rule}",
            "a message was not delivered",
        ),
        body=(
            "A message about incident {incident} was given up after {attempts} attempts.",
            "They were about {incidents}; `watchdog why` says more of each.",
            "The last answer: {answer}",
            # `.0`: said only where there was an answer, without saying it again.
            "{answer:.0}Look at the channel's address and permissions; `watchdog check --probe` asks it.",
        ),
    ),
    NoticeKind.STATE_NOT_STORED: NoticeText(
        title=("cannot store its state",),
        body=(
            "Writing the state file fails: {detail}",
            "Watching and telling go on from memory. After a restart now, messages may be repeated.",
        ),
        over_title=("stores its state again",),
        over_body=("It could not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.LOG_LAG: NoticeText(
        title=("reads the log of {task} late", "reads a log late: {subject}"),
        body=("It is {lag} behind the newest line.", "Lines are not lost, but are told late."),
        over_title=("is up to date with the log of {task}", "is up to date with {subject}"),
        over_body=("It was behind from {since} to {until} ({duration}).",),
    ),
    NoticeKind.LOG_UNREAD: NoticeText(
        title=("left log lines of {task} unread", "left log lines unread: {subject}"),
        body=(
            "Lines from {from} to {to} were not read.",
            "Lines were not read in {stretches} stretches between {first} and {last}.",
            "Only lines that contain “{contains}” were asked for.",
            "Why: {reason}",
            "An error in the unread lines has not been seen.",
        ),
        over_title=("reads every log line of {task} again", "reads every log line again: {subject}"),
        over_body=("Lines were left unread between {since} and {until} ({duration}).",),
    ),
    NoticeKind.NO_LOG_LINE: NoticeText(
        title=("has never seen a log line of {task}", "has never seen a log line of {subject}"),
        body=(
            "The source answers, but with no line. Log rules see nothing there.",
            "Check the task's id and namespace, and whether it writes to its standard output.",
        ),
        over_title=("sees log lines of {task} now", "sees log lines of {subject} now"),
        over_body=("The first came at {until}.",),
    ),
    NoticeKind.FIRST_READ: NoticeText(
        title=("reads the log of {task} from now on", "reads a log from now on: {subject}"),
        body=("Older matching lines that were not told: {count}.", "Only lines after {from} are."),
    ),
    NoticeKind.RULE_THIN: NoticeText(
        title=("rule {rule} cannot be judged on {task}", "rule {rule} cannot be judged: {subject}"),
        body=(
            "The source answers, but {lacking}.",
            "A window longer than {window}, or a lower `coverage`, helps.",
            "Perhaps {metric} is misspelt, or this task does not give it.",
            "`watchdog check --probe` shows what there is.",
        ),
        over_title=(
            "rule {rule} can be judged on {task} again",
            "rule {rule} can be judged again: {subject}",
        ),
        over_body=("It could not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.RULE_SLOW: NoticeText(
        title=("rule {rule} is slower than its interval", "{source} answers more slowly than it is asked"),
        body=(
            "Judging it once takes {took}; all rules are to be judged every {interval}.",
            # `.0`: said only of a rule, without saying its name again.
            "{rule:.0}Evaluations are left out meanwhile, and the alerts of every rule come late.",
            "{rule:.0}A longer `interval` helps, or `select` with fewer tasks.",
            "Asking {source} for {capability} takes longer than {poll}, and it is asked every {poll}.",
            "{poll:.0}What depends on it is judged and told late.",
            "{poll:.0}If it goes on: give {source} a longer `poll`, or look at the network on the way there.",
        ),
        over_title=("rule {rule} keeps its interval again", "{source} keeps up with what it is asked again"),
        over_body=("It did not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.SUSPECT_VALUES: NoticeText(
        title=("suspect values of {metric} on {task}", "suspect values: {subject}"),
        body=(
            "The source says: {remark}",
            "They are used as they came, not rescaled.",
        ),
        over_title=(
            "values of {metric} on {task} are plausible again",
            "values are plausible again: {subject}",
        ),
        over_body=("They were not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.SOURCE_REMARK: NoticeText(
        title=("{source} remarks on {metric} of {task}", "a remark of a source: {subject}"),
        body=("It says: {remark}",),
    ),
    NoticeKind.UNKNOWN_STATUS: NoticeText(
        title=("does not know the status “{status}” of {task}", "does not know a status: {subject}"),
        body=("Until it is known, the task counts as running.",),
        over_title=("knows the status of {task} again", "knows the status again: {subject}"),
        over_body=("It did not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.SET_RETIRED: NoticeText(
        title=("no longer expects old pods of {task}", "no longer expects old pods: {subject}"),
        body=("Why: {reason}", "They are not missed any more: {pods}"),
    ),
    NoticeKind.RULES_REJECTED: NoticeText(
        title=("rejected the new rule file", "rejected a rule file: {subject}"),
        body=(
            "{problems}",
            "{running:.0}The rules that were in force stay in force.",
            "{kept:.0}The last rules that were good are in force, of {kept}.",
        ),
        over_title=("accepted the rule file",),
        over_body=("It was rejected from {since} to {until} ({duration}).",),
    ),
    NoticeKind.SLOTS_LATE: NoticeText(
        title=("cannot keep its interval",),
        body=(
            "{missed} of the last {slots} evaluations were left out: the one before took too long.",
            "The newest took {took}; the interval is {interval}.",
            "The slowest rule: {rule}",
            "Alerts are late. A longer `interval`, fewer rules or a faster machine helps.",
        ),
        over_title=("keeps its interval again",),
        over_body=("It could not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.TOO_MANY_ALERTS: NoticeText(
        title=("rule {rule} is true of more than it can follow", "a rule is true of too much: {subject}"),
        body=(
            "Followed: {limit}. Left out: {left}.",
            "What is left out is told when there is room.",
            "Group it by pod or task, or narrow it with `select`.",
        ),
        over_title=(
            "rule {rule} follows all it is true of again",
            "{subject} follows all it is true of again",
        ),
        over_body=("Some was left out between {since} and {until} ({duration}).",),
    ),
    NoticeKind.TOO_MANY_SERIES: NoticeText(
        title=("{source} has more series of {metric} than can be kept", "too many series: {subject}"),
        body=(
            "Kept: {limit}. Left out of the newest answer: {left}.",
            "Nothing is judged by what is left out.",
        ),
        over_title=(
            "every series of {metric} of {source} is kept again",
            "no longer too many series: {subject}",
        ),
        over_body=("Some was left out between {since} and {until} ({duration}).",),
    ),
    NoticeKind.HEARTBEAT_UNHEARD: NoticeText(
        title=("its heartbeat is not heard outside",),
        body=(
            "Calling the dead man's switch failed {failures} times in a row. The last answer: {answer}",
            "It will report the watchdog as dead, although the watching goes on.",
        ),
        over_title=("its heartbeat is heard outside again",),
        over_body=("It was not from {since} to {until} ({duration}).",),
    ),
    NoticeKind.STILL_WATCHING: NoticeText(
        title=("still watching: tasks {tasks}, rules {rules}", "still watching"),
        body=("Incidents open: {firing}", "But: {but}"),
    ),
}
