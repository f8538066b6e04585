"""Forms that write files of a repository."""

from __future__ import annotations

from typing import Any

from flask_wtf.file import FileField
from wtforms import BooleanField, HiddenField, StringField, TextAreaField
from wtforms.validators import DataRequired

from project_service.kit.http.forms import Form

PLAIN = {"spellcheck": "false", "autocapitalize": "off", "autocomplete": "off"}
BLANK = "can't be blank"


class CommitForm(Form):
    """The message of a commit and the branch that gets it."""

    commit_message = StringField("Commit message", [DataRequired(BLANK)])
    target_branch = StringField(
        "Target branch",
        [DataRequired(BLANK)],
        description="Another name makes a new branch, which begins at this one.",
        render_kw=PLAIN,
    )
    last_commit_id = HiddenField()  # the commit whose file was shown

    @property
    def shown_fields(self) -> list[Any]:
        """The fields in the order of the page."""
        return [field for field in self if field.type not in ("CSRFTokenField", "HiddenField")]


class FileForm(CommitForm):
    """The path and the content of a file."""

    file_path = StringField("Path", [DataRequired(BLANK)], render_kw=PLAIN)
    content = TextAreaField("Content", render_kw={"rows": 20, "class": "source-text", "spellcheck": "false"})
    field_order = ("file_path", "content", "commit_message", "target_branch")

    @property
    def shown_fields(self) -> list[Any]:
        """The fields in the order of the page."""
        return [self[name] for name in self.field_order]


class FileUploadForm(CommitForm):
    """A file to upload."""

    file = FileField("File", description="At most 10 MB.")
    replace = BooleanField("Replace a file of the same name")
    field_order = ("file", "replace", "commit_message", "target_branch")

    @property
    def shown_fields(self) -> list[Any]:
        """The fields in the order of the page."""
        return [self[name] for name in self.field_order]
