"""The server as a client: of webhooks, kubelets, extension servers. Not what is asked of them."""
