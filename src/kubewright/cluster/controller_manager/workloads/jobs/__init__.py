"""The Job and CronJob controllers."""
