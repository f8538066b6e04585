"""Rules of a SARIF run: what a result takes from its rule (scanner formats reference, section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.grading import (
    confidence_word,
    severity_of_either,
    severity_score,
    severity_word,
)
from project_service.areas.vulnerabilities.formats.identifying import MAX_ID_LENGTH
from project_service.areas.vulnerabilities.formats.shapes import (
    MAX_DESCRIPTION_LENGTH,
    MAX_ENTRIES_IN_MEMORY,
    MAX_VALUES,
    Data,
    cut,
    members,
    obj,
    objs,
    text,
    texts,
    web,
    whole,
)
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity

LEVELS = {
    "error": FindingSeverity.HIGH,
    "warning": FindingSeverity.MEDIUM,
    "note": FindingSeverity.LOW,
    "none": FindingSeverity.INFO,
}
SEMGREP = "semgrep"
CWE = "CWE"
SURE = " CONFIDENCE"
NOTHING: Data = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """What is used of a rule. ``severities`` are those of its properties, by their priority."""

    id: str
    name: str
    url: str | None
    level: str
    severities: tuple[FindingSeverity | None, ...]
    confidence: Confidence | None
    summary: str
    full: str
    help: str
    help_text: str
    messages: Data
    tags: tuple[str, ...]
    related_weaknesses: tuple[str, ...]
    weaknesses: tuple[Any, ...]


NO_RULE = Rule("", "", None, "", (None, None, None), None, "", "", "", "", NOTHING, (), (), ())


class Rules:
    """The rules of the driver and the extensions of a run."""

    def __init__(self, run: Data, scanner_id: str, pointer: str) -> None:
        self._run = run
        self._scanner_id = scanner_id
        tool = obj(run.get("tool"))
        driver = obj(tool.get("driver"))
        extensions = tool.get("extensions")
        self._extensions = list(objs(extensions)) if isinstance(extensions, list) else []
        self._components: list[tuple[str, list[Rule]]] = [
            (text(component.get("name")), list(self._read(component.get("rules"), pointer)))
            for component in (driver, *self._extensions)
        ]
        self._by_id: list[dict[str, Rule]] = []
        for _, rules in self._components:
            ids: dict[str, Rule] = {}
            for rule in rules:
                ids.setdefault(rule.id, rule)
            self._by_id.append(ids)
        self.messages = obj(driver.get("globalMessageStrings"))
        self._overrides = self._read_overrides()

    def of(self, result: Data) -> tuple[str, Rule]:
        """Return the id of the rule that a result names, and the rule."""
        reference = obj(result.get("rule"))
        name = (text(result.get("ruleId")) or text(reference.get("id"))).strip()[:MAX_ID_LENGTH]
        index = whole(reference.get("index", result.get("ruleIndex")))
        rule = self._at(self._component(reference.get("toolComponent")), index)
        if rule is not None and (not name or name == rule.id or name.startswith(f"{rule.id}/")):
            return name or rule.id, rule
        return name, self._named(name)

    def level_of(self, rule: Rule) -> str:
        """Return the level of results that have none: that of the invocation, else of the rule; may be empty."""
        return self._overrides.get(rule.id, rule.level) if rule.id else ""

    def is_weakness(self, reference: Data) -> bool:
        """Whether a reference of a taxonomy is one to CWE."""
        component = obj(reference.get("toolComponent"))
        name = text(component.get("name"))
        index = whole(component.get("index"))
        taxonomies = self._run.get("taxonomies")
        if not name and index is not None and isinstance(taxonomies, list) and 0 <= index < len(taxonomies):
            name = text(obj(taxonomies[index]).get("name"))
        return name.upper() == CWE

    def _component(self, reference: Any) -> int:
        """Return the index among the components: 0 for the driver, -1 for one that does not exist."""
        if not isinstance(reference, dict):
            return 0
        index, name = whole(reference.get("index")), text(reference.get("name"))
        if index is not None:
            return index + 1 if 0 <= index < len(self._extensions) else -1
        return (
            next((index for index, (component_name, _) in enumerate(self._components) if component_name == name), -1)
            if name
            else 0
        )

    def _at(self, component: int, index: int | None) -> Rule | None:
        if component < 0 or index is None:
            return None
        rules = self._components[component][1]
        return rules[index] if 0 <= index < len(rules) else None

    def _named(self, name: str) -> Rule:
        for wanted in (name, name.rpartition("/")[0]):
            rule = next((ids[wanted] for ids in self._by_id if wanted in ids), None) if wanted else None
            if rule is not None:
                return rule
        return NO_RULE

    def _read(self, rules: Any, pointer: str) -> Iterator[Rule]:
        if rules is None:
            return
        if not isinstance(rules, list | Entries):
            raise BrokenReport("SARIF report parsing failed", "must be an array", f"{pointer}/tool/driver/rules")
        for number, rule in enumerate(rules):
            if number == MAX_ENTRIES_IN_MEMORY:
                reason = f"has more than {MAX_ENTRIES_IN_MEMORY} rules"
                raise BrokenReport("SARIF report parsing failed", reason, f"{pointer}/tool")
            yield self._rule(obj(rule))

    def _rule(self, rule: Data) -> Rule:
        properties = obj(rule.get("properties"))
        help_, full = obj(rule.get("help")), obj(rule.get("fullDescription"))
        tags = tuple(texts(properties.get("tags")))
        relations = rule.get("relationships")
        targets = [obj(relation.get("target")) for relation in members(relations)]
        cwe = properties.get("cwe")
        sure = confidence_of_tags(tags)
        if sure is None and self._scanner_id != SEMGREP:
            sure = confidence_word(properties.get("precision"))
        return Rule(
            id=text(rule.get("id")).strip()[:MAX_ID_LENGTH],
            name=text(rule.get("name")),
            url=web(rule.get("helpUri")),
            level=text(obj(rule.get("defaultConfiguration")).get("level")),
            severities=severities_of(properties),
            confidence=sure,
            summary=_text(obj(rule.get("shortDescription")).get("text")),
            full=_text(full.get("markdown")) or _text(full.get("text")),
            help=_text(help_.get("markdown")) or _text(help_.get("text")),
            help_text=_text(help_.get("text")),
            messages=obj(rule.get("messageStrings")),
            tags=tags,
            related_weaknesses=tuple(text(target.get("id")) for target in targets if self.is_weakness(target)),
            weaknesses=tuple(cwe[:MAX_VALUES] if isinstance(cwe, list) else [cwe]),
        )

    def _read_overrides(self) -> dict[str, str]:
        levels: dict[str, str] = {}
        invocations = self._run.get("invocations")
        lists = (invocation.get("ruleConfigurationOverrides") for invocation in objs(invocations or ()))
        for override in chain.from_iterable(objs(overrides) for overrides in lists if isinstance(overrides, list)):
            level = text(obj(override.get("configuration")).get("level"))
            descriptor = obj(override.get("descriptor"))
            rule = self._at(self._component(descriptor.get("toolComponent")), whole(descriptor.get("index")))
            name = text(descriptor.get("id")) or (rule.id if rule else "")
            if name and level in LEVELS:
                levels.setdefault(name, level)
        return levels


def _text(value: Any) -> str:
    """Return a text of a rule, shortened once: every result of the rule repeats it."""
    return cut(text(value), MAX_DESCRIPTION_LENGTH)


def severities_of(properties: Data) -> tuple[FindingSeverity | None, ...]:
    """Return the severity in properties of a result or a rule: security-severity, CVSS scores, words."""
    if not properties:
        return (None, None, None)
    cvss = severity_score(properties.get("cvssv3_baseScore")) or severity_score(properties.get("cvssv2_score"))
    word = severity_word(properties.get("severity"))
    return severity_of_either(properties.get("security-severity")), cvss, word


def confidence_of_tags(tags: Iterable[str]) -> Confidence | None:
    """Return the confidence of a tag such as ``HIGH CONFIDENCE``."""
    for tag in tags:
        if tag.upper().endswith(SURE):
            return confidence_word(tag[: -len(SURE)])
    return None
