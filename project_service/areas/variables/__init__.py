"""CI/CD variables of projects."""
