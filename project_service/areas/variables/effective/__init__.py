"""The variables that a job gets: those of project, groups and instance, by scope and precedence."""
