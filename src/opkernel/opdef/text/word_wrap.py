"""Text broken into lines, as generated documentation has it.

Source: TensorFlow core/framework/op_gen_lib.cc.
"""


def word_wrap(prefix: str, text: str, width: int) -> str:
    """The text behind a prefix, broken at blanks into lines of at most `width` (WordWrap).

    Lines after the first are indented as far as the prefix reaches. A word that is longer than a
    line gets one of its own. Line ends that are in the text count as characters of words.
    """
    room = width - len(prefix)
    lines = []
    while len(text) > room:
        blank = text.rfind(" ", 0, room + 1) if room >= 0 else text.rfind(" ")
        blank = text.find(" ") if blank < 0 else blank
        if blank < 0:
            break
        lines.append(text[:blank].rstrip(" "))
        text = text[blank:].lstrip(" ")
    if text or not lines:
        lines.append(text)
    return prefix + f"\n{' ' * len(prefix)}".join(lines)
