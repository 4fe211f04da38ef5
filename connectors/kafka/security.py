"""How Kafka's clients reach a broker that asks who they are: one set of settings, for librdkafka, Java and Spark."""

import os
from pathlib import Path
from typing import Any, Literal, Self

from cryptography.hazmat.primitives import serialization
from pydantic import FilePath, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from connectors.kafka.logins import LOGINS, Login
from infra.errors import UserError
from infra.pem import certificates, check_pair, private_key
from infra.settings import describe

SECRETS = "KAPPA_SECRETS"  # names the folder


class KafkaSecurity(BaseSettings):
    """Encryption and identity. Certificates and keys are PEM files, as Strimzi and cert-manager write them.

    A key may be in PKCS#1 or PKCS#8, and has no password. Each setting may also stand in a file that is named as its
    variable, in the folder KAPPA_SECRETS.
    """

    model_config = SettingsConfigDict(env_prefix="KAPPA_", extra="ignore")

    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    kafka_sasl_username: str | None = None
    kafka_sasl_password: SecretStr | None = None
    kafka_ssl_ca: FilePath | None = None  # default: the system's
    kafka_ssl_certificate: FilePath | None = None
    kafka_ssl_key: FilePath | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, environment, files, in this order; the folder of the files is looked up anew each time."""
        assert isinstance(file_secret_settings, SecretsSettingsSource)
        file_secret_settings.secrets_dir = file_secret_settings.secrets_dir or os.environ.get(SECRETS)
        return init_settings, env_settings, file_secret_settings

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.uses_sasl and not (self.kafka_sasl_username and self.kafka_sasl_password):
            raise ValueError("KAPPA_KAFKA_SASL_USERNAME and _PASSWORD: are missing; a SASL protocol needs both")
        if bool(self.kafka_ssl_certificate) != bool(self.kafka_ssl_key):
            raise ValueError("KAPPA_KAFKA_SSL_CERTIFICATE and _KEY: give both or neither")
        if self.uses_tls:
            self._check_files()
        return self

    def _check_files(self) -> None:
        """Java and librdkafka would say of a wrong file that no broker answers."""
        if self.kafka_ssl_ca:
            certificates("KAPPA_KAFKA_SSL_CA", self.kafka_ssl_ca)
        if self.kafka_ssl_certificate and self.kafka_ssl_key:
            certificate = "KAPPA_KAFKA_SSL_CERTIFICATE", self.kafka_ssl_certificate
            check_pair(certificate, ("KAPPA_KAFKA_SSL_KEY", self.kafka_ssl_key))

    @property
    def uses_tls(self) -> bool:
        """Whether what goes over the network is encrypted."""
        return self.kafka_security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether clients give a name and a password."""
        return self.kafka_security_protocol.startswith("SASL")

    @property
    def identity(self) -> str:
        """The setting that says who its clients are."""
        if self.uses_sasl:
            return f"KAPPA_KAFKA_SASL_USERNAME={self.kafka_sasl_username!r}"
        if self.uses_tls and self.kafka_ssl_certificate:
            return f"KAPPA_KAFKA_SSL_CERTIFICATE={self.kafka_ssl_certificate}"
        return f"KAPPA_KAFKA_SECURITY_PROTOCOL={self.kafka_security_protocol}"

    def client(self) -> dict[str, Any]:
        """As settings of confluent_kafka; none for a broker that asks nothing."""
        username, password = self._login() or (None, None)
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
                "ssl.keystore.key": _pkcs8(self.kafka_ssl_key),
            }
        )

    def spark(self) -> dict[str, str]:
        """As options of Spark's Kafka source."""
        return {f"kafka.{name}": value for name, value in self.java().items()}

    def _settings(self, settings: dict[str, str | None]) -> dict[str, str]:
        if self.kafka_security_protocol == "PLAINTEXT":
            return {}
        return {name: value for name, value in settings.items() if value is not None}

    def _login(self) -> Login | None:
        if not (self.uses_sasl and self.kafka_sasl_username and self.kafka_sasl_password):
            return None
        return self.kafka_sasl_username, self.kafka_sasl_password.get_secret_value()

    def _jaas(self) -> str:
        kind = "plain.Plain" if self.kafka_sasl_mechanism == "PLAIN" else "scram.Scram"
        username, password = map(_quoted, self._login() or ("", ""))
        module = f"org.apache.kafka.common.security.{kind}LoginModule"
        return f"{module} required username={username} password={password};"


def load_security() -> KafkaSecurity:
    """Encryption and identity as the environment, and the files of secrets, have them now.

    Raises UserError naming the variable that can't be used.
    """
    try:
        return KafkaSecurity()
    except ValidationError as error:
        raise UserError(describe(error, prefix="KAPPA_")) from None


def client_config(bootstrap: str) -> dict[str, Any]:
    """The connection (see client.py) to the brokers at `bootstrap`, as this environment secures it.

    Raises UserError naming the variable that can't be used.
    """
    return {"bootstrap.servers": bootstrap, **load_security().client()}


def _present_login() -> Login | None:
    try:
        return load_security()._login()
    except UserError:  # the file is being replaced
        return None


LOGINS.found_by(_present_login)


def _pkcs8(path: Path | None) -> str | None:
    """The one form that Java takes."""
    if path is None:
        return None
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return str(private_key("KAPPA_KAFKA_SSL_KEY", path).private_bytes(serialization.Encoding.PEM, form, plain).decode())


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def _content(path: Path | None) -> str | None:
    return path.read_text() if path else None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
