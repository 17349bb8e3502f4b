"""SPDY, WebSockets and the streams of exec, attach and port-forward. Commands are in `kubelet.sandbox`."""
