"""ClusterSpec: what TensorFlow's has and refuses, from Python, a file or TF_CONFIG."""

import json

import pytest

from opkernel.distributed import ClusterSpec, TaskName
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.proto import ClusterDef

WORKERS = ["worker0:2222", "worker1:2222"]
SPARSE = {0: "ps0:2222", 3: "ps3:2222"}


@pytest.fixture
def spec() -> ClusterSpec:
    return ClusterSpec({"worker": WORKERS, "ps": SPARSE})


def test_jobs_and_tasks(spec: ClusterSpec) -> None:
    assert spec.jobs == ["worker", "ps"]
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("ps") == [0, 3]
    assert spec.task_address("ps", 3) == "ps3:2222"
    assert spec.job_tasks("ps") == ["ps0:2222", None, None, "ps3:2222"]
    assert spec.as_dict() == {"worker": WORKERS, "ps": SPARSE}
    assert [str(task) for task in spec.tasks] == [
        "/job:worker/replica:0/task:0",
        "/job:worker/replica:0/task:1",
        "/job:ps/replica:0/task:0",
        "/job:ps/replica:0/task:3",
    ]


def test_tasks_by_number() -> None:
    spec = ClusterSpec({"worker": 3})
    assert spec.task_indices("worker") == [0, 1, 2]
    assert spec.task_address("worker", 1) == ""


def test_the_message_of_tensorflow(spec: ClusterSpec) -> None:
    message = spec.as_cluster_def()
    assert [(job.name, dict(job.tasks)) for job in message.job] == [
        ("worker", {0: "worker0:2222", 1: "worker1:2222"}),
        ("ps", {0: "ps0:2222", 3: "ps3:2222"}),
    ]
    assert ClusterSpec(message) == spec
    assert ClusterSpec(ClusterDef()) == ClusterSpec({})
    assert not ClusterSpec({})


@pytest.mark.parametrize("ask", ["num_tasks", "task_indices", "job_tasks"])
def test_a_job_that_is_none(spec: ClusterSpec, ask: str) -> None:
    with pytest.raises(NotFoundError, match="No such job in cluster: 'chief'"):
        getattr(spec, ask)("chief")


def test_a_task_that_is_none(spec: ClusterSpec) -> None:
    with pytest.raises(NotFoundError, match="No task with index 1 in job 'ps'"):
        spec.task_address("ps", 1)


@pytest.mark.parametrize("job", ["", "1st", "a/b", "a:b", "*", "a b", 5, None])
def test_names_that_no_job_has(job: object) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be the name of a job"):
        ClusterSpec({job: 1})  # type: ignore[dict-item]  # the fault


@pytest.mark.parametrize("tasks", ["host:1", 1.5, None, True, [1], {"0": "host:1"}, {0: 1}])
def test_tasks_of_no_sense(tasks: object) -> None:
    with pytest.raises(TypeError, match=r"[jJ]ob .worker."):
        ClusterSpec({"worker": tasks})  # type: ignore[dict-item]  # the fault


@pytest.mark.parametrize("tasks", [-1, {-1: "host:1"}])
def test_negative_tasks(tasks: int | dict[int, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="-1"):
        ClusterSpec({"worker": tasks})


def test_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"cluster": {"worker": WORKERS}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert ClusterSpec.from_tf_config() == ClusterSpec({"worker": WORKERS})
    assert ClusterSpec.from_tf_config('{"cluster": {"ps": {"3": "a:1"}}}').task_indices("ps") == [3]
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(NotFoundError, match="TF_CONFIG is not set"):
        ClusterSpec.from_tf_config()


def test_files(tmp_path) -> None:
    path = tmp_path / "cluster.json"
    for text in ('{"worker": 2}', '{"cluster": {"worker": 2}, "task": {}}'):
        path.write_text(text)
        assert ClusterSpec.from_file(path) == ClusterSpec({"worker": 2})
    with pytest.raises(NotFoundError, match="no file"):
        ClusterSpec.from_file(tmp_path / "none.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"cluster": []}', '{"task": {"index": 0}}'])
def test_texts_that_are_no_cluster(tmp_path, text: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match=r"cluster\.json"):
        ClusterSpec.from_file(path)
    with pytest.raises(InvalidArgumentError, match="TF_CONFIG"):
        ClusterSpec.from_tf_config(text)


def test_names_of_tasks() -> None:
    task = TaskName.parse("/job:worker/replica:0/task:1/device:CPU:0")
    assert task == TaskName("worker", 1) == TaskName.parse(str(task))
    with pytest.raises(InvalidArgumentError, match="does not name a task"):
        TaskName.parse("/job:worker")
