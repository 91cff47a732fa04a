"""The errors behind an error, and what they say: Python's, Java's and those of delta-rs."""

from __future__ import annotations

import re

_MOST_LINKS = 20
_LIBRARIES = ("py4j", "pyspark", "delta", "deltalake", "_internal", "pyarrow")
"""The modules whose errors carry the text of another program's error."""
_ARROW = re.compile(r"\s*(?:\x1b\[\d*m)?↳(?:\x1b\[\d*m)?\s*|\nError: (?=Os \{)")
"""How delta-rs begins the lines of an error's causes."""
_JAVA_NAME = re.compile(
    r"^(?:.*\b(?:Caused by|executor \w+\)): |: )?(?:(?:[\w$]+\.)+[\w$]+(?:Exception|Error): )+"
)

_IN_WORKER = re.compile(r"^ {4,}\S.*\n([A-Za-z_][\w.]*(?:: .*)?)$", re.MULTILINE)
"""The last line of a Python trace: the line above is code, which is indented."""
_CAUSED_BY = re.compile(r"^(?:Caused by: |: )(?:[\w$]+\.)+([\w$]+: .+)$", re.MULTILINE)


def links(error: BaseException) -> list[BaseException]:
    """An error, and the errors that caused it, the nearest first.

    Causes that `from None` hides are among them: PySpark hides Java's errors so.
    """
    found: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(found) < _MOST_LINKS and not any(link is seen for seen in found):
        found.append(link)
        link = link.__cause__ or link.__context__
    return found


def text_of(error: BaseException) -> str:
    """What an error says, with all of Java's causes where Java raised it."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  py4j asks the JVM for the text, and the JVM may have ended
        return type(error).__name__
    return _ARROW.sub(": ", text)


def is_of_library(error: BaseException) -> bool:
    """Whether an error comes from a library, so that its text is about another program's error."""
    modules = (kind.__module__.split(".")[0] for kind in type(error).__mro__)
    return isinstance(error, OSError) or any(module in _LIBRARIES for module in modules)


def line_at(text: str, position: int) -> str:
    """The line of a text that holds a position, without the name of a Java class in front."""
    begin = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[begin : end if end >= 0 else len(text)]
    return _JAVA_NAME.sub("", line.strip())


def innermost(error: BaseException) -> str:
    """The name and text of the error that an error began with, as a line.

    Spark's error of a Python worker has the worker's trace in its text, and the message at its end.
    """
    text = text_of(error)
    if "Traceback (most recent call last)" in text and (found := _IN_WORKER.findall(text)):
        return str(found[-1])
    if found := _CAUSED_BY.findall(text):
        return str(found[-1])
    return f"{type(error).__name__}: {text}"
