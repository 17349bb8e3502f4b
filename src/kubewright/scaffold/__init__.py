"""Projects: the files an operator starts with, and how they follow when kinds and webhooks are added.

`project` is the PROJECT file, the log of what was asked for; `layout` renders every file from it; `changes` brings
a folder from what was rendered last to what is rendered now, around the user's own edits. The command line calls them.
"""
