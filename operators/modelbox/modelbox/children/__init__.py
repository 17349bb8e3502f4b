"""The objects a ModelBox is made of: what they are to look like, and how they are put in place."""
