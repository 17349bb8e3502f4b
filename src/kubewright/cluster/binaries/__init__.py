"""Where etcd and the Kubernetes binaries come from: a folder, the cache, a release, a build. Not their processes."""
