"""Reports that scanners write in formats of their own: recognition, reading, and mapping to findings."""
