"""The stand-in SDK and its cloud, without our adapter: documented shapes, documented misbehaviour."""

import asyncio
import json
import sys
import textwrap

import pytest

from watchdog.demo.faults import OF_THE_SDK, FaultKind
from watchdog.demo.play import Phase
from watchdog.demo.siflow_cloud import SDK_PATH, StandInSiflow
from watchdog.demo.story import calm, demo

HEAD = """
    import json, sys
    sys.path.insert(0, sys.argv[1])
    import siflow
    from siflow import SiFlow
    def make(**values):
        usual = dict(region=sys.argv[2], cluster="auriga", access_key_id="stand-in-ak", timeout=10)
        return SiFlow(**{**usual, **values}, access_key_secret="stand-in-sk", max_retries=0)
    def error(call):
        try:
            return repr(call())
        except Exception as caught:
            return type(caught).__name__
"""


@pytest.fixture
async def cloud(clock):
    async with StandInSiflow(calm(), clock=clock) as cloud:
        yield cloud


@pytest.fixture
def run(cloud):
    async def program(body: str):
        """Run a program against the SDK; returns what it put into `found`."""
        text = "\n".join(map(textwrap.dedent, (HEAD, body, "print(json.dumps(found))")))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", text, str(SDK_PATH), cloud.region, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return json.loads(output)

    return program


async def test_the_catalogue_has_five_dimensions_with_metric_name_and_unit(run) -> None:
    found = await run("""
        client = make()
        found = {d: {e.metric: e.unit for e in client.tasks.metrics_catalog(dimension=d)}
                 for d in ("task", "pod", "node", "all_pods", "all_nodes")}
    """)
    assert found["task"]["GpuCoreUsage"] == "%"
    assert "XidErrors" in found["node"]
    assert "XidErrors" not in found["task"]
    assert len({tuple(names) for names in found.values()}) > 2  # they differ


async def test_a_metrics_answer_has_the_documented_fields(run) -> None:
    found = await run("""
        response = make().tasks.metrics(task_name="calm-run", metrics=["GpuCoreUsage", "MemUsageOfRequest"],
                                        start_time="2026-09-10 11:58:00", end_time="2026-09-10 12:00:00")
        (first, second), meta = response.metrics, response.meta
        (series,) = first.series
        found = [first.metric, first.unit, first.aggregation, first.warning, second.metric,
                 [meta.start_time, meta.end_time, meta.step, meta.warnings],
                 vars(series.labels), series.values[-1].timestamp, series.values[-1].value > 80]
    """)
    assert found == [
        "GpuCoreUsage",
        "percent",
        "avg",
        None,
        "MemUsageOfRequest",
        ["2026-09-10 11:58:00", "2026-09-10 12:00:00", "60", None],
        {"pod": None, "node": None, "gpu": None, "device": None, "extra": None},
        1789012800,
        True,
    ]


async def test_the_other_queries_are_as_fine_as_they_are_documented(run) -> None:
    found = await run("""
        tasks = make().tasks
        def shown(response, *names):
            series = [s for m in response.metrics for s in m.series]
            return sorted({tuple(getattr(s.labels, n) for n in names) for s in series}, key=str)
        node = tasks.node_metrics(pod_name="calm-worker-0", metrics=["GpuTemp", "RdmaHealth"])
        found = {
            "pod": shown(tasks.pod_metrics(pod_name="calm-worker-0", metrics=["GpuCoreUsage"]), "pod", "gpu"),
            "node": shown(node, "node", "gpu", "device"), "name": node.node_name,
            "pods": shown(tasks.all_pods_metric(task_name="calm-run", metric="GpuCoreUsage"), "pod"),
            "some": shown(tasks.all_pods_metric(task_name="calm-run", metric="GpuCoreUsage",
                                                pods=["calm-worker-0"]), "pod"),
            "nodes": shown(tasks.all_nodes_metric(task_name="calm-run", metric="GpuCoreUsage"), "node"),
        }
    """)
    cards = [["node-01", gpu, None] for gpu in ("0", "1")]
    devices = [["node-01", None, f"mlx5_{n}"] for n in range(4)]
    assert sorted(found.pop("node"), key=str) == sorted(cards + devices, key=str)
    assert found == {
        "pod": [["calm-worker-0", None]],
        "name": "node-01",
        "pods": [["calm-master-0"], ["calm-worker-0"]],
        "some": [["calm-worker-0"]],
        "nodes": [["node-00"], ["node-01"]],
    }


async def test_custom_metrics_are_a_list_with_samples_and_cannot_be_queried(run) -> None:
    found = await run("""
        tasks = make().tasks
        full = tasks.metrics_catalog_full(task_name="calm-run", dimension="task")
        without = tasks.metrics_catalog_full(dimension="task")
        answer = tasks.metrics(task_name="calm-run", metrics=["train_loss"])
        first = full.custom[0]
        found = [[e.metric for e in full.custom], first.sample_value, first.labels["pod_name"],
                 without.custom, len(full.data) > 5, full.built_in, answer.metrics[0].warning is not None,
                 error(lambda: tasks.metrics_catalog_full(task_name="a", task_uuid="b"))]
    """)
    names, value, pod, *rest = found
    assert names == ["train_loss", "requests_total"]
    assert 1.5 < value < 1.7
    assert pod == "calm-master-0"
    assert rest == [[], True, None, True, "ValueError"]


async def test_more_than_sixty_metrics_are_refused(run) -> None:
    found = await run("""
        call = lambda n: make().tasks.metrics(task_name="calm-run", metrics=["GpuTemp"] * n)
        found = [len(call(60).metrics), error(lambda: call(61))]
    """)
    assert found == [60, "ValueError"]


async def test_the_recommended_step_can_be_had_both_ways(run) -> None:
    found = await run("""
        from siflow.resources.metrics import recommend_time_step
        year = ("2026-01-01 00:00:00", "2026-12-31 23:59:59")
        hour = ("2026-01-01 00:00:00", "2026-01-01 01:00:00")
        found = [make().metrics.recommend_time_step(*year) == recommend_time_step(*year),
                 recommend_time_step(*hour), recommend_time_step(*year) > 3600]
    """)
    assert found == [True, 60, True]


async def test_what_is_wrong_at_construction_is_a_plain_value_error(run) -> None:
    found = await run("""
        found = [error(lambda: make(region="moon")), error(lambda: make(cluster="dust")),
                 error(lambda: make(access_key_id=None)), siflow.SiFlowError.__subclasses__()[0].__name__]
    """)
    assert found == ["ValueError", "ValueError", "ValueError", "APIError"]


async def test_older_versions_lack_methods(run) -> None:
    found = await run("""
        old = make(cluster="auriga-0.2.9")
        found = [hasattr(old.tasks, "list_pods"), hasattr(old.tasks, "query_logs"), hasattr(old, "metrics"),
                 error(lambda: old.tasks.get("by-place"))]
    """)
    assert found == [True, False, False, "TypeError"]


ERRORS = {
    "login": "AuthenticationError",
    "forbidden": "PermissionDeniedError",
    "not found": "NotFoundError",
    "throttled": "RateLimitError",
    "error 500": "InternalServerError",
    "html": "AttributeError",
    "refused": "None",
    "null lists": "None",
}


@pytest.mark.parametrize(("fault", "name"), ERRORS.items())
async def test_failures_are_the_real_ones(cloud, run, fault, name) -> None:
    cloud.faults.add(fault, "list")
    assert await run("found = error(lambda: make().tasks.list(count=5))") == name


async def test_a_list_is_cut_at_its_count_and_has_other_pages(run) -> None:
    found = await run("""
        tasks = make().tasks
        found = [[t.uuid for t in tasks.list(count=1)], tasks.list(count=1, extra_query={"page": "2"})]
    """)
    assert found == [["1234567890"], []]


async def test_a_tasks_enhancements_stay_a_dict(cloud, run) -> None:
    cloud.enter(Phase(start=0.0, pods=("calm-master-0",), retries=2, held=True))
    found = await run("""
        task = make().tasks.get(uuid="1234567890")
        found = [task.enhancements["fault_tolerance"]["records"], task.enhancements["debug_mode"]["holding"],
                 task.instances, hasattr(task, "oss")]
    """)
    assert found == [["retry 1", "retry 2"], True, None, True]


async def test_log_items_have_content_only_unless_told_otherwise(cloud, run, clock) -> None:
    for text in ("one", "two", "three"):
        cloud.say(text)
    body = """
        logs = lambda order: make().tasks.query_logs("1234567890", limit=2, sort_order=order).logs
        found = [[vars(item) for item in logs("desc")], [item.content for item in logs("asc")]]
    """
    newest, oldest = await run(body)
    assert newest == [{"content": "three"}, {"content": "two"}]
    assert oldest == ["one", "two"]
    cloud.faults.add("with times", "logs")
    newest, _ = await run(body)
    assert sorted(newest[0]) == ["content", "pod", "timestamp"]


def _everything() -> str:
    return """
        from collections.abc import Mapping
        def plain(value):
            if isinstance(value, (list, tuple)):
                return [plain(item) for item in value]
            return {k: plain(v) for k, v in vars(value).items()} if hasattr(value, "__dict__") else value
        def told(call):
            try:
                return plain(call())
            except Exception as caught:
                return type(caught).__name__
        tasks = make().tasks
        calls = (lambda: tasks.list(count=5),
                 lambda: tasks.query_logs("1234567890", limit=5, sort_order="desc"),
                 lambda: tasks.node_metrics(pod_name="calm-worker-0", metrics=["GpuTemp", "XidErrors"]))
        found = [told(call) for call in calls]
    """


@pytest.mark.parametrize("kind", sorted(OF_THE_SDK - {FaultKind.DEAF, FaultKind.DIE}))
async def test_every_fault_of_its_own_changes_what_arrives(cloud, run, kind) -> None:
    cloud.say("a line")
    honest = await run(_everything())
    cloud.faults.add(kind, value="GpuTemp" if kind == "warned" else "something else")
    assert await run(_everything()) != honest


async def test_the_story_is_the_other_clouds(clock) -> None:
    async with StandInSiflow(demo(), clock=clock) as cloud:
        assert {staged.play.name for staged in cloud.tasks.values()} == {
            "pretrain-llama-70b",
            "pretrain-eval-7b",
        }
