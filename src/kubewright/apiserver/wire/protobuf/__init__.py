"""Protobuf bodies: the binary form that clients written in Go prefer, to JSON trees and back.

`envelope` is the way in; `reads` and `writes` follow the `tables` of each message, `values` knows times, quantities
and their like.
"""

from __future__ import annotations

from kubewright.apiserver.wire.protobuf.envelope import (
    MEDIA_TYPE,
    PREFIX,
    STREAM_MEDIA_TYPE,
    decode,
    decode_body,
    decode_watch_event,
    encode,
    encode_watch_event,
    has_protobuf,
)

__all__ = (
    "MEDIA_TYPE",
    "PREFIX",
    "STREAM_MEDIA_TYPE",
    "decode",
    "decode_body",
    "decode_watch_event",
    "encode",
    "encode_watch_event",
    "has_protobuf",
)
