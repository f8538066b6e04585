"""Vulnerability findings: reports of scanners, their findings, and feedback on findings."""
