"""The kinds of rules, and the file that declares rules of these kinds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from infra.errors import UserError
from infra.settings import describe
from jobs.rules.absence import Absence
from jobs.rules.change import Change
from jobs.rules.rule import Rule, seconds
from jobs.rules.sequence import EventSequence

KINDS: dict[str, type[Rule]] = {"change": Change, "sequence": EventSequence, "absence": Absence}


def load_rules(file: Path, state_ttl: int) -> tuple[Rule, ...]:
    """The rules of a file, in its order; none of them may look back further than `state_ttl`, ns.

    Raises UserError naming the file, the rule, the field, the value and what it must be.
    """
    declared = _read(file)
    if not isinstance(declared, dict) or declared.keys() != {"rules"} or not isinstance(declared["rules"], list):
        raise UserError(f"{file}: must be a map with one field, rules: a list of rules (docs/reference/rules.md)")
    rules = tuple(_rule(file, number, one) for number, one in enumerate(declared["rules"]))
    _check_ids(file, rules)
    for rule in rules:
        if rule.longest > state_ttl:
            raise UserError(
                f"{file}: rule {rule.id}: looks back {seconds(rule.longest)} s, but what is known of a machine is "
                f"evicted after KAPPA_RULES_STATE_TTL={seconds(state_ttl)}s; raise that, or look back less far"
            )
    return rules


def _read(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text())
    except OSError as error:
        raise UserError(f"KAPPA_RULES_FILE={file}: {error.strerror}; name a file of rules") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error


def _rule(file: Path, number: int, fields: Any) -> Rule:
    if not isinstance(fields, dict):
        raise UserError(f"{file}: rule {number + 1}: must be a map of fields, not {fields!r}")
    name = fields.get("id", number + 1)
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"{file}: rule {name}: kind={kind!r}: there are {', '.join(KINDS)}")
    try:
        return KINDS[kind].model_validate(fields)
    except ValidationError as error:
        raise UserError(f"{file}: rule {name}: {describe(error)}") from None


def _check_ids(file: Path, rules: Iterable[Rule]) -> None:
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise UserError(f"{file}: rule {rule.id}: id={rule.id!r}: another rule has it; give each its own")
        seen.add(rule.id)
