"""HTTPS of the reflector: what requests, uploads and token streams are measured against.

limits, moments, framing     bounds, instants, and where units of a byte stream begin and end
pages, uploads, pacing       what a path answers, the same for every version
http1, websocket, http2      one connection each, plain bytes in and out
tls_server, tcp_socket       TLS 1.3 with early data; the socket, with kernel stamps
http3, quic_server           the same pages over QUIC
service                      all of it, opened and closed together
"""
