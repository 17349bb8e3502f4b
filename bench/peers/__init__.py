"""The same operator several times over: in Kubewright, in other frameworks, and with no framework at all.

Each does, for every Widget in the namespace `bench` that is not paused: server-side apply one owned ConfigMap, write
`ready` and `observedGeneration` to the status. Each takes `--kubeconfig FILE` and ends on SIGTERM. `commands` prepares
and starts them.
"""
