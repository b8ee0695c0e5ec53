"""Which languages there are."""

from collections.abc import Mapping

from watchdog.core.wording.en import ENGLISH
from watchdog.core.wording.shape import Wording
from watchdog.core.wording.zh import CHINESE

LANGUAGES: Mapping[str, Wording] = {"en": ENGLISH, "zh": CHINESE}


def wording(language: str) -> Wording:
    """Return the words of a language such as `zh` or `zh-CN`; English for one that is not there."""
    return LANGUAGES.get(language.replace("_", "-").split("-")[0].lower(), ENGLISH)
