"""kube-scheduler for simulated nodes: filter, score, preempt, bind. The lifecycle of a bound pod is in
`cluster.kubelet`."""
