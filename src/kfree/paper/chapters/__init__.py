"""What the page says about what was measured. Nothing here changes a number."""
