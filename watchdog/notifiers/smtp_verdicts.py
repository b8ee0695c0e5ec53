"""What an SMTP conversation says about a mail.

Pure. A mail is delivered when the server has taken responsibility for it: 2xx after the message itself.
Before the message was sent, whatever went wrong can be tried again without a duplicate.
"""

from dataclasses import replace

from watchdog.core.notifications import Answer, DeliveryResult
from watchdog.notifiers.exchanges import Fault, SmtpStep

_DELIVERY = ("mail", "rcpt", "data", "body")
_SIZE_WORDS = ("too large", "too big", "size limit", "message size", "exceeds size", "5.3.4", "5.2.3")


def judge_conversation(steps: tuple[SmtpStep, ...], note: str) -> DeliveryResult:
    """Return the outcome of one recorded conversation; `note` is used when the steps explain nothing."""
    accepted = [step for step in steps if step.verb == "body" and 200 <= step.code < 300]
    refused = [step for step in steps if step.verb in _DELIVERY and step.code >= 400]
    broken = [step for step in steps if step.fault and step.verb != "quit"]
    begun = sum(step.verb == "mail" and step.code < 400 for step in steps)
    if accepted and not refused and len(accepted) >= begun:
        return _result(Answer.OK, accepted[-1])
    if accepted:
        return _partly(refused or broken)
    if refused:
        return _refusal(refused[-1])
    if broken:
        return _breakage(broken[-1])
    return _unfinished(steps, note)


def _refusal(step: SmtpStep) -> DeliveryResult:
    text = step.text.lower()
    mailbox_full = "5.2.2" in text
    if step.code >= 500 and any(word in text for word in _SIZE_WORDS):
        return _result(Answer.TOO_LONG, step)
    if step.code == 552 and not mailbox_full:
        return _result(Answer.TOO_LONG, step)
    if step.code < 500 or mailbox_full:
        return _result(Answer.RETRY, step)
    return _result(Answer.PERMANENT, step)


def _partly(failed: list[SmtpStep]) -> DeliveryResult:
    """Some recipients got it. A retry would repeat it to them, so only a temporary failure earns one."""
    if not failed:
        return DeliveryResult(answer=Answer.UNKNOWN, detail="only some of the URL's recipients were served")
    worst = max(failed, key=lambda step: step.code)
    result = _result(Answer.PERMANENT if worst.code >= 500 else Answer.UNKNOWN, worst)
    return replace(result, detail=f"some of the URL's recipients got it, but not all: {result.detail}")


def _breakage(step: SmtpStep) -> DeliveryResult:
    if step.fault is Fault.UNSUPPORTED:
        return _result(Answer.PERMANENT, step)
    if step.verb == "body" and step.fault is not None and step.fault.after_sending:
        return _result(Answer.UNKNOWN, step)
    return _result(Answer.RETRY, step)


def _unfinished(steps: tuple[SmtpStep, ...], note: str) -> DeliveryResult:
    """No step of the delivery failed, yet none succeeded: log-in, greeting, or a loss in mid-message."""
    last = [step for step in steps if step.verb not in ("quit", "rset")]
    if last and last[-1].code >= 400:
        step = last[-1]
        return _result(Answer.RETRY if step.code < 500 else Answer.PERMANENT, step)
    if last and last[-1].verb == "data":
        return DeliveryResult(
            answer=Answer.UNKNOWN, detail="the connection broke while the mail was being sent"
        )
    return DeliveryResult(answer=Answer.RETRY, detail=f"no mail was sent: {note or 'no reason given'}")


def _result(answer: Answer, step: SmtpStep) -> DeliveryResult:
    text = " ".join(step.text.split())
    where = f"{step.host}, {step.verb.upper()}: " if step.host else f"{step.verb.upper()}: "
    if not step.code:
        reason = f"{step.fault or Fault.OTHER}{': ' if text else ''}{text}"
        return DeliveryResult(answer=answer, code="SMTP", detail=where + reason)
    return DeliveryResult(
        answer=answer, code=f"SMTP {step.code}", detail=f"{where}{step.code} {text}".strip()
    )
