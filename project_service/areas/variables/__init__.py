"""CI/CD variables of projects, groups and the instance, and what a job gets of them."""
