"""SPDY, WebSockets and the streams of exec, attach and port-forward. Not what runs in a container."""
