"""What is measured, beside the tests: data of a realistic size, ratios, and what they should be."""
