"""CronJob: `v1` has its schedule as one text, `v2` in five fields; `options` is what both have."""
