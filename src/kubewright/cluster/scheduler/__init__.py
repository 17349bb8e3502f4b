"""kube-scheduler for simulated nodes: filter, score, preempt, bind. Not the life of a pod after it is bound; see
`cluster.kubelet`."""
