"""What is asked before objects are stored."""
