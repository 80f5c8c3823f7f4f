"""What is kept of histories: found changes and what people make of them, and the schedules of the
campaigns that feed them."""
