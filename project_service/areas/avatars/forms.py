"""The form of a picture."""

from __future__ import annotations

from flask_wtf.file import FileField

from project_service.domain.accounts.avatars import ENDINGS, MAX_BYTES
from project_service.kit.http.forms import Form

ACCEPTED = ",".join(f".{ending}" for ending in ENDINGS)


class PictureForm(Form):
    """A new picture."""

    avatar = FileField(
        "New picture",
        description=f"A file of at most {MAX_BYTES >> 10} KiB: {', '.join(ENDINGS)}.",
        render_kw={"accept": ACCEPTED},
    )
