"""What a tunable is, the table of all of them, and the rules across them."""
