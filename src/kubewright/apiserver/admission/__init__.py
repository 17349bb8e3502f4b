"""The admission plugins, each by the name it has in kube-apiserver. Not the contract (`kinds.admission`), not their
order (`admission_chain`)."""
