"""What makes compose and the chart run a generation's jobs, and which options go with which platform."""

import pytest
import yaml

from infra.errors import UserError
from jobs.runtime.settings import Settings, load_storage_settings
from ops.replay import platforms
from ops.replay.registry import Generation

DETECTOR = ("detector", "incidents", "archive", "indexer")


def generation(name="v2", **more):
    return Generation(name=name, base="live", **{"jobs": DETECTOR, "platform": "kubernetes", **more})


def test_the_chart_gets_the_applications_of_every_generation_that_it_runs():
    others = [
        generation("v1", jobs=("statistics", *DETECTOR), image="kappa:1"),
        generation("here", platform="processes"),
        generation(),
    ]
    said = platforms.to_apply(generation(image="kappa:next"), others, Settings())
    assert yaml.safe_load(said) == {
        "generations": [
            {"name": "v1", "jobs": ["statistics", "detector", "archive", "indexer"], "image": "kappa:1"},
            {"name": "v2", "jobs": ["detector", "archive", "indexer"], "image": "kappa:next"},
        ]
    }


def test_a_dropped_generation_is_not_in_the_values():
    said = platforms.to_apply(generation(), [generation("v1", state="dropped")], Settings())
    assert [one["name"] for one in yaml.safe_load(said)["generations"]] == ["v2"]


def test_compose_gets_a_command_that_starts_what_is_planned_beside_the_stack():
    planned = generation(platform="compose", image="kappa:next")
    assert platforms.to_apply(planned, [], Settings(stack="telco")) == (
        "KAPPA_STACK=telco KAPPA_GENERATION=v2 KAPPA_PROFILE=standard KAPPA_IMAGE=kappa:next "
        "docker compose -p telco-v2 --project-directory . -f infra/docker/jobs-standard.yml "
        "-f infra/docker/generation-standard.yml up -d detector archive indexer"
    )


def test_in_the_small_profile_one_service_runs_what_is_planned():
    said = platforms.to_apply(generation(platform="compose"), [], Settings(profile="small"))
    assert said.endswith("-f infra/docker/jobs-small.yml -f infra/docker/generation-small.yml up -d jobs")
    assert "KAPPA_IMAGE" not in said


@pytest.mark.parametrize(
    ("platform", "image", "ref", "detach", "message"),
    [
        ("processes", "kappa:next", None, False, "--image kappa:next: .*--ref"),
        ("compose", None, "1f2e3d4", False, "--ref 1f2e3d4: .*--image"),
        ("kubernetes", None, None, True, "--detach: .*kappa replay watch"),
    ],
)
def test_an_option_of_another_platform_is_refused(platform, image, ref, detach, message):
    with pytest.raises(UserError, match=message):
        platforms.check(platform, image, ref, detach)


def test_storage_that_nobody_else_reaches_is_refused_with_the_value_to_set():
    assert load_storage_settings().storage_shared
    with pytest.raises(UserError, match=r"storage.existingClaim, or storage.checkpoints and storage.delta"):
        load_storage_settings(storage_shared=False)
