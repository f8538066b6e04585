"""Services that change issues, milestones and notes and record the events; several areas use them."""
