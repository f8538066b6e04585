"""Process tree: supervisor, web server, worker, embedded Redis, backups, WSGI entry."""
