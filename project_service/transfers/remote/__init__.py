"""Download and upload of archives from and to other servers."""
