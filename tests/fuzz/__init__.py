"""Long attempts at finding an answer that no user should see."""
