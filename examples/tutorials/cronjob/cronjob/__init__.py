"""An operator that starts Jobs on a schedule.

`api` has the kind in two versions, `schedule` reads cron's notation, `webhooks` converts, fills in and refuses, and
`controller` starts the Jobs.
"""
