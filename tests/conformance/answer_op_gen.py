"""Answers about text protos, wrapped text and the overrides of ops' documentation."""

from typing import Any

from answer_opdef import one_line, read, status_of
from opkernel.opdef import ApiDefMap, pb_txt_from_multiline, pb_txt_to_multiline
from opkernel.opdef import word_wrap as wrapped
from opkernel.proto import OpDef, OpList


def pbtxt(request: dict[str, Any]) -> Any:
    """A text proto in the other form, and back."""
    if request["dir"] == "from":
        return {"text": pb_txt_from_multiline(request["text"])}
    text = pb_txt_to_multiline(request["text"], request["fields"])
    return {"text": text, "back": pb_txt_from_multiline(text)}


def word_wrap(request: dict[str, Any]) -> Any:
    """Text in lines."""
    return {"text": wrapped(request["prefix"], request["text"], request["width"])}


def api_def(request: dict[str, Any]) -> Any:
    """The ApiDefs of ops after overrides."""
    ops = [read(text, OpDef()) for text in request["ops"]]
    api_defs = ApiDefMap(OpList(op=ops))
    load = [status_of(api_defs.load_api_def, text) for text in request["api_defs"]]
    if request["update_docs"]:
        api_defs.update_docs()
    found = {op.name: one_line(api_defs.get_api_def(op.name)) for op in ops}
    return {"load": load, "api_defs": found}
