"""The PodSecurity plugin: the Pod Security Standards, by the labels of namespaces.

kube-apiserver: staging/src/k8s.io/pod-security-admission. `levels` parses the labels, `subjects` is a pod as the checks
see it, `baseline` and `restricted` are the checks of the two levels, `standards` says which of them apply at which
version, `existing_pods` checks the pods of a namespace whose labels change, `plugin` is the admission plugin.
"""
