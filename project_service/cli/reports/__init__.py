"""Commands for reports of scanners: upload, check, export."""
