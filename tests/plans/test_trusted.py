"""Public keys as agents read them, against the library that makes them."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.agents.plans.trusted import BEGIN, END, from_pem, is_signature


def pem(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).strip()


@settings(max_examples=50, deadline=None)
@given(secret=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200))
def test_what_the_other_library_signs_is_a_signature_and_nothing_near_it(
    secret: bytes, message: bytes
) -> None:
    private = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
    key = from_pem(pem(private.public_key()))
    assert key is not None
    assert key.public_bytes_raw() == private.public_key().public_bytes_raw()
    signature = private.sign(message)
    assert is_signature(signature, key, message)
    assert not is_signature(signature, key, message + b"x")
    assert not is_signature(bytes([signature[0] ^ 1]) + signature[1:], key, message)
    for length in (0, 63, 65):
        assert not is_signature((signature + b"x")[:length], key, message)


def test_a_key_of_another_kind_is_none() -> None:
    assert from_pem(pem(ec.generate_private_key(ec.SECP256R1()).public_key())) is None


@pytest.mark.parametrize("body", [b"", b"AA", b"!!!!", b"QUFBQQ=="])
def test_what_is_no_key_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no "):
        from_pem(BEGIN + b"\n" + body + b"\n" + END)
