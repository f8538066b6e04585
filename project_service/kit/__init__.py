"""What any service needs and nothing of projects: database, errors, parameters, paging, jobs, secrets."""
