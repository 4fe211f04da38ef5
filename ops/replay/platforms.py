"""Where the jobs of a generation run: as processes of this machine, as services of compose, as pods of the chart.

Compose and the chart are told by files that people keep. So there `kappa replay start` only plans the generation, and
prints what is to be applied: whoever applies it needs no right here, and what plans needs none there.
"""

from collections.abc import Iterable

import yaml

from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import Generation, Platform

# What to do with what `to_apply` gives.
HOW = {
    "compose": "run this beside docker-compose.yml",
    "kubernetes": "add this to the release's values (helm upgrade --reuse-values --values FILE)",
}


def check(platform: Platform, image: str | None, ref: str | None, detach: bool) -> None:
    """Raises UserError if these options of `kappa replay start` don't go with the platform."""
    if platform == "processes":
        if image:
            raise UserError(f"--image {image}: processes run the code that is here; give --ref COMMIT")
        return
    if ref:
        raise UserError(f"--ref {ref}: {platform} runs images; build one of that commit and give --image")
    if detach:
        raise UserError(f"--detach: {platform} runs the jobs; `kappa replay watch NAME` shows how far they are")


def to_apply(generation: Generation, others: Iterable[Generation], settings: Settings) -> str:
    """What makes the generation's platform run its jobs: values of the chart, or a command."""
    if generation.platform == "compose":
        return _command(generation, settings)
    listed = [
        one for one in others if one.platform == "kubernetes" and one.state != "dropped" and one.name != generation.name
    ]
    return _values([*listed, generation])


def _command(generation: Generation, settings: Settings) -> str:
    stack, profile = settings.stack, settings.profile
    variables = {"KAPPA_STACK": stack, "KAPPA_GENERATION": generation.name, "KAPPA_PROFILE": profile}
    if generation.image:
        variables["KAPPA_IMAGE"] = generation.image
    files = " ".join(f"-f infra/docker/{file}-{profile}.yml" for file in ("jobs", "generation"))
    services = ["jobs"] if profile == "small" else JOBS.applications(generation.jobs)
    return (
        f"{' '.join(f'{name}={value}' for name, value in variables.items())} "
        f"docker compose -p {stack}-{generation.name} --project-directory . {files} up -d {' '.join(services)}"
    )


def _values(generations: Iterable[Generation]) -> str:
    """All generations of the chart, as a list of values is replaced as a whole."""
    entries = [
        {"name": one.name, "jobs": [*JOBS.applications(one.jobs)]} | ({"image": one.image} if one.image else {})
        for one in generations
    ]
    return yaml.safe_dump({"generations": entries}, sort_keys=False, default_flow_style=None).rstrip()
