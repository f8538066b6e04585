"""What users choose for themselves: levels, addresses, quiet hours (notifications reference, section 8)."""
