"""Forms of the pages about findings."""

from __future__ import annotations

from flask_wtf.file import FileField
from wtforms import SelectField, StringField, TextAreaField

from project_service.areas.vulnerabilities.models import DISMISSAL_REASONS
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.kit.http.forms import Form


class DismissForm(Form):
    """Dismissal of a finding."""

    dismissal_reason = SelectField("Reason", choices={"": "None given"} | DISMISSAL_REASONS)
    comment = TextAreaField("Comment", render_kw={"rows": 3})


class UploadForm(Form):
    """Upload of a report, with branch and commit of its pipeline."""

    file = FileField(
        "Report", description="SARIF, CycloneDX, GitLab's format, or the JSON of a scanner; also as .gz or .zip."
    )
    report_type = SelectField("Kind of report", choices={"": "Found out from the file"} | REPORT_TYPES)
    ref = StringField("Branch", description="The project's default branch when empty.")
    sha = StringField("Commit", description="Its SHA.")
    category = StringField(
        "Category", description="Distinguishes several runs of one scanner, such as parts of a project."
    )
    source_root = StringField("Folder of the sources", description="Absolute path that is cut off from paths of files.")
