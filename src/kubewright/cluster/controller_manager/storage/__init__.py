"""Volume binding, protection, ephemeral claims and resource claims."""
