"""What one request can cost: hostile requests against a server in a process of its own, which is watched meanwhile.

    python -m tests.security.harness              # the catalogue, schemathesis' requests, 100,000 at random
    python -m tests.security.harness catalogue -k protobuf

`watched_process` starts the server and reads how long its event loop was held and how much memory it took; `attacks`
has the catalogue; `fuzzing` has the requests at random. `make hostile` runs all of it, `tests/security` a small part.
"""
