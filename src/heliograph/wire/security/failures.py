"""Why a secured connection is not made: the setting, what is wrong with it, what to do. One line each."""

import ssl

from heliograph.wire.errors import Unreachable


class SecurityFailure(Unreachable):
    """A broker is there, and does not let us in or is not to be trusted; or what we need for it is missing."""


_CERTIFICATES = {  # by OpenSSL's number of the reason
    9: "the broker's certificate is not valid yet: check the clocks of both machines, or renew the certificate",
    10: "the broker's certificate has expired, or that of its issuer: renew it on the broker, or in ssl.truststore",
    18: "the broker's certificate is self-signed and not in ssl.truststore: add it there",
    19: "the broker's certificate is from an issuer that is not in ssl.truststore: add the issuer's certificate there",
    20: "the broker's certificate is from an issuer that is not in ssl.truststore: add the issuer's certificate there",
    62: "the broker's certificate is for another host name: connect by a name that is in the certificate, or set "
    "ssl.endpoint.identification.algorithm to nothing",
    64: "the broker's certificate is for another IP address: connect by a name that is in the certificate, or set "
    "ssl.endpoint.identification.algorithm to nothing",
}
_NOT_ACCEPTED = "the broker does not accept our certificate: check ssl.keystore and the broker's trust store"
_NO_VERSION = "this machine's OpenSSL allows no TLS version of ssl.enabled.protocols: add TLSv1.2 or TLSv1.3"
_NO_CERTIFICATE = "the broker requires a client certificate: set ssl.keystore.location"
_ALERTS = {  # by a part of OpenSSL's name of the reason, upper case
    "CERTIFICATE_REQUIRED": _NO_CERTIFICATE,
    "CERTIFICATE_EXPIRED": "the broker says that our certificate has expired: renew the one in ssl.keystore",
    "CERTIFICATE_UNKNOWN": _NOT_ACCEPTED,
    "BAD_CERTIFICATE": _NOT_ACCEPTED,
    "UNKNOWN_CA": "the broker does not trust the issuer of our certificate: check ssl.keystore and the broker's trust "
    "store",
    "WRONG_VERSION_NUMBER": "the listener does not speak TLS: check the port, or set security.protocol to PLAINTEXT or "
    "SASL_PLAINTEXT",
    "PROTOCOL_VERSION": "broker and client have no TLS version in common: check ssl.enabled.protocols",
    "NO_PROTOCOLS_AVAILABLE": _NO_VERSION,
    "NO_CIPHERS_AVAILABLE": _NO_VERSION,
    "UNSUPPORTED_PROTOCOL": "broker and client have no TLS version in common: check ssl.enabled.protocols",
    "HANDSHAKE_FAILURE": "broker and client have no cipher suite in common, or the broker requires a client "
    "certificate: check ssl.cipher.suites and ssl.keystore",
    "NO_SHARED_CIPHER": "broker and client have no cipher suite in common: check ssl.cipher.suites",
    "UNEXPECTED_EOF": "the broker ended the TLS handshake: check that the port is one for TLS, and that the broker "
    "accepts our certificate (ssl.keystore)",
}


def describe_tls_error(error: Exception, has_certificate: bool = True) -> str | None:
    """What a failed TLS handshake means; None if the error is not one of TLS. `has_certificate`: we have sent one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = _CERTIFICATES.get(error.verify_code)
        return text or f"the broker's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).upper().replace(" ", "_")
        known = next((text for name, text in _ALERTS.items() if name in reason), None)
        if known == _NOT_ACCEPTED and not has_certificate:  # what Java says if there is none
            return _NO_CERTIFICATE
        return known or f"the TLS handshake failed: {error.reason or error}"
    return None


NOT_TLS = (
    "the broker closed the connection during the TLS handshake: check that the port is one for TLS "
    "(security.protocol), and that the broker accepts our certificate (ssl.keystore)"
)
NEEDS_TLS = "the listener speaks TLS: set security.protocol to SSL or SASL_SSL, or use another port"
NEEDS_SASL = (
    "the broker closed the connection at the first request: the listener may require SASL, check security.protocol"
)
NO_SASL = "the listener does not use SASL: check the port, or set security.protocol to PLAINTEXT or SSL"
