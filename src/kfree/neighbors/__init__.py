"""Who is near whom: metrics, exact search, the tie rule, the three structures. Never labels."""
