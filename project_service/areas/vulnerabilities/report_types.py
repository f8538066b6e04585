"""Report types. The type is that of the upload; that in the file is ignored."""

from __future__ import annotations

SAST = "sast"
DAST = "dast"
DEPENDENCY_SCANNING = "dependency_scanning"
CONTAINER_SCANNING = "container_scanning"
SECRET_DETECTION = "secret_detection"  # noqa: S105  # a report type
COVERAGE_FUZZING = "coverage_fuzzing"
API_FUZZING = "api_fuzzing"

REPORT_TYPES = {
    SAST: "SAST",
    DAST: "DAST",
    DEPENDENCY_SCANNING: "Dependency scanning",
    CONTAINER_SCANNING: "Container scanning",
    SECRET_DETECTION: "Secret detection",
    COVERAGE_FUZZING: "Coverage fuzzing",
    API_FUZZING: "API fuzzing",
}
