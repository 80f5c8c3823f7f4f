"""Work that takes long, in processes of their own."""
