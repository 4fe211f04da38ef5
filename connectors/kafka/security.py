"""How Kafka's clients reach a broker that asks who they are: one set of settings, for librdkafka, Java and Spark."""

import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import FilePath, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.errors import UserError
from infra.settings import describe


class KafkaSecurity(BaseSettings):
    """Encryption and identity. Certificates and keys are PEM files, as Strimzi and cert-manager write them.

    A secret may also stand in a file that is named as its variable, in the folder KAPPA_SECRETS.
    """

    model_config = SettingsConfigDict(env_prefix="KAPPA_", extra="ignore", secrets_dir=os.environ.get("KAPPA_SECRETS"))

    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    kafka_sasl_username: str | None = None
    kafka_sasl_password: SecretStr | None = None
    kafka_ssl_ca: FilePath | None = None  # default: the system's
    kafka_ssl_certificate: FilePath | None = None
    kafka_ssl_key: FilePath | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.uses_sasl and not (self.kafka_sasl_username and self.kafka_sasl_password):
            raise ValueError("KAPPA_KAFKA_SASL_USERNAME and _PASSWORD: are missing; a SASL protocol needs both")
        if bool(self.kafka_ssl_certificate) != bool(self.kafka_ssl_key):
            raise ValueError("KAPPA_KAFKA_SSL_CERTIFICATE and _KEY: give both or neither")
        return self

    @property
    def uses_sasl(self) -> bool:
        """Whether clients give a name and a password."""
        return self.kafka_security_protocol.startswith("SASL")

    def client(self) -> dict[str, Any]:
        """As settings of confluent_kafka; none for a broker that asks nothing."""
        username, password = self._login()
        return self._settings(
            {
                "security.protocol": self.kafka_security_protocol,
                "sasl.mechanism": self.kafka_sasl_mechanism if username else None,
                "sasl.username": username,
                "sasl.password": password,
                "ssl.ca.location": _text(self.kafka_ssl_ca),
                "ssl.certificate.location": _text(self.kafka_ssl_certificate),
                "ssl.key.location": _text(self.kafka_ssl_key),
            }
        )

    def java(self) -> dict[str, str]:
        """As settings of Java's clients."""
        return self._settings(
            {
                "security.protocol": self.kafka_security_protocol,
                "sasl.mechanism": self.kafka_sasl_mechanism if self.uses_sasl else None,
                "sasl.jaas.config": self._jaas() if self.uses_sasl else None,
                "ssl.truststore.type": "PEM" if self.kafka_ssl_ca else None,
                "ssl.truststore.certificates": _content(self.kafka_ssl_ca),
                "ssl.keystore.type": "PEM" if self.kafka_ssl_key else None,
                "ssl.keystore.certificate.chain": _content(self.kafka_ssl_certificate),
                "ssl.keystore.key": _content(self.kafka_ssl_key),
            }
        )

    def spark(self) -> dict[str, str]:
        """As options of Spark's Kafka source."""
        return {f"kafka.{name}": value for name, value in self.java().items()}

    def _settings(self, settings: dict[str, str | None]) -> dict[str, str]:
        if self.kafka_security_protocol == "PLAINTEXT":
            return {}
        return {name: value for name, value in settings.items() if value is not None}

    def _login(self) -> tuple[str | None, str | None]:
        if not (self.uses_sasl and self.kafka_sasl_password):
            return None, None
        return self.kafka_sasl_username, self.kafka_sasl_password.get_secret_value()

    def _jaas(self) -> str:
        kind = "plain.Plain" if self.kafka_sasl_mechanism == "PLAIN" else "scram.Scram"
        username, password = (_quoted(value or "") for value in self._login())
        module = f"org.apache.kafka.common.security.{kind}LoginModule"
        return f"{module} required username={username} password={password};"


def client_config(bootstrap: str) -> dict[str, Any]:
    """The connection (see client.py) to the brokers at `bootstrap`, as this environment secures it.

    Raises UserError naming the variable that can't be used.
    """
    try:
        security = KafkaSecurity()
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_")) from None
    return {"bootstrap.servers": bootstrap, **security.client()}


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _content(path: Path | None) -> str | None:
    return path.read_text() if path else None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
