"""Numbers with their nouns."""


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "run"), counted(0, "attack")
    ('1 run', '0 attacks')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"
