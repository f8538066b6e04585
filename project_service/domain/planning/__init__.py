"""What changes issues, milestones and their notes, and records that it happened; used by every area that does so."""
