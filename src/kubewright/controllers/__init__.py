"""From changes to reconcile calls: what is declared, what wakes it, who runs it, and what it may do."""
