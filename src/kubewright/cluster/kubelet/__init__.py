"""The kubelet of simulated nodes: node objects, pod lifecycle and status, logs, exec, attach and port-forward.

It starts no process: containers exist only in the status of their pods. Scheduling is in `cluster.scheduler`.
"""
