"""Forms of the general settings of a project."""

from __future__ import annotations

from typing import Any

from wtforms import RadioField, SelectField, StringField, TextAreaField

from project_service.areas.projects.forms import VISIBILITY_TEXTS
from project_service.domain.access_levels import Visibility
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import DISABLED, ENABLED, PAGES, PRIVATE, PUBLIC, Project
from project_service.kit.http.forms import Form

LEVEL_TEXTS = {DISABLED: "Off", PRIVATE: "Only project members", ENABLED: "Everyone with access to the project"}
# what each feature is; those of SERVED have pages here, the others are kept for clients of the API and for exports
FEATURE_TEXTS = {
    "issues": ("Issues", "Issues, their comments and incidents."),
    "merge_requests": ("Merge requests", "Merge requests of an imported project."),
    "repository": ("Repository", "Files and history. CI/CD needs it."),
    "builds": ("CI/CD", "CI/CD settings with the variables. Off: the API answers 403 to requests for variables."),
    "security_and_compliance": ("Security", "Reports of security scanners and their findings."),
    "wiki": ("Wiki", ""),
    "snippets": ("Snippets", ""),
    "forking": ("Forks", ""),
    "releases": ("Releases", "Releases with their notes and links. They need the repository."),
    "monitor": ("Monitor", "Alerts, heartbeats, silences and errors. Off: what is sent is still received."),
    "environments": ("Environments", "The environments that variables and findings name."),
    "operations": ("Operations", ""),
    "analytics": ("Analytics", ""),
    PAGES: ("Pages", ""),
}
SERVED = (
    *("issues", "merge_requests", "repository", "releases", "builds", "security_and_compliance"),
    *("monitor", "environments"),
)


def _level_field(feature: str) -> SelectField:
    title, description = FEATURE_TEXTS[feature]
    choices = LEVEL_TEXTS | ({PUBLIC: "Everyone"} if feature == PAGES else {})
    return SelectField(title, choices=choices, description=description)


class DetailsForm(Form):
    """Name, description, topics, default branch and visibility."""

    name = StringField("Project name")
    description = TextAreaField("Description", render_kw={"rows": 3})
    topics = StringField("Topics", description="Separated by commas.")
    default_branch = StringField(
        "Default branch", description="A branch of the repository.", render_kw={"spellcheck": "false"}
    )
    visibility = RadioField("Visibility level", choices=VISIBILITY_TEXTS)

    @classmethod
    def of(cls, project: Project) -> DetailsForm:
        """Return the form with the current values."""
        return cls(
            formdata=None,
            name=project.name,
            description=project.description,
            topics=", ".join(project.tag_list),
            default_branch=project.default_branch,
            visibility=Visibility(project.visibility).text,
        )

    def fields(self, *, owner: bool) -> dict[str, Any]:
        """Return the fields for the service; name and visibility are changed by owners only."""
        values: dict[str, Any] = {
            "description": (self.description.data or "").replace("\r\n", "\n"),
            "topics": [topic.strip() for topic in (self.topics.data or "").split(",") if topic.strip()],
            "default_branch": (self.default_branch.data or "").strip(),
        }
        return values | {"name": self.name.data or "", "visibility": self.visibility.data} if owner else values


class FeaturesForm(Form):
    """The access level of each feature."""

    @classmethod
    def of(cls, project: Project) -> FeaturesForm:
        """Return the form with the current values."""
        return cls(formdata=None, **cls._levels(project))

    @classmethod
    def sent(cls, project: Project) -> FeaturesForm:
        """Return the form that was sent; features that it leaves out keep their levels."""
        return cls(**cls._levels(project))

    @staticmethod
    def _levels(project: Project) -> dict[str, str]:
        return {name: getattr(project, f"{name}_access_level") for name in FEATURE_TEXTS}

    def fields(self) -> dict[str, Any]:
        """Return the fields for the service."""
        return {f"{name}_access_level": self[name].data for name in FEATURE_TEXTS}


for _feature in FEATURE_TEXTS:
    setattr(FeaturesForm, _feature, _level_field(_feature))


class PathForm(Form):
    """The last part of the address."""

    path = StringField("Project slug", id="new-path", render_kw={"spellcheck": "false", "autocapitalize": "off"})


class TransferForm(Form):
    """The namespace to move to."""

    namespace = SelectField("New namespace", coerce=int)

    def set_namespaces(self, namespaces: list[Namespace], current: int) -> None:
        """Offer the namespaces in which the caller may create projects, without the current one."""
        choices: dict[Any, str] = {
            namespace.id: namespace.full_path for namespace in namespaces if namespace.id != current
        }
        self.namespace.choices = choices


class DeleteForm(Form):
    """The full path, typed to confirm a deletion."""

    typed_path = StringField(
        "Full path", render_kw={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}
    )
