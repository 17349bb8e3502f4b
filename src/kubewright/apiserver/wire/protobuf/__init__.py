"""application/vnd.kubernetes.protobuf, the encoding that clients in Go prefer: bodies to JSON trees and back.

`envelope` encodes and decodes whole bodies; `decoder` and `encoder` follow the field tables of `messages`; `values` has
the messages that are one value in JSON, such as times and quantities.
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
    encode_around,
    encode_items,
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
    "encode_around",
    "encode_items",
    "encode_watch_event",
    "has_protobuf",
)
