"""What users choose for themselves: levels, addresses, quiet hours (notifications and on-call reference, section 8)."""
