"""The plays that come with the program: the demo's story, and a calm run for tests in a process.

Data only. Seconds are play seconds; history begins before 0, so that windows are covered at once.
"""

from collections.abc import Callable, Mapping

from watchdog.demo.play import Level, Line, Phase, Play, TaskPlay

HISTORY = -150.0
FIRST_PODS = tuple(f"tn-exqr5k7lvj7k-{role}" for role in ("master-0", "worker-0", "worker-1", "worker-2"))
NEW_PODS = tuple(f"tn-p0m4wz81dk2c-{role}" for role in ("master-0", "worker-0", "worker-1", "worker-2"))
CALM_PODS = ("calm-master-0", "calm-worker-0")
DEAD = FIRST_PODS[3]
BUSY = (
    Level(metric="gpu", value=0.94),
    Level(metric="vram", value=0.71, wobble=0.005),
    Level(metric="cpu", value=0.38),
    Level(metric="memory", value=0.52, wobble=0.005),
)
IDLE = (
    Level(metric="gpu", value=0.01, wobble=0.01),
    Level(metric="vram", value=0.71, wobble=0.001),
    Level(metric="cpu", value=0.05),
    Level(metric="memory", value=0.52, wobble=0.001),
)
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 412, in <module>',
    "    main()",
    '  File "/workspace/train.py", line 377, in main',
    "    loss = engine.train_step(batch)",
    '  File "/workspace/engine.py", line 158, in train_step',
    "    dist.all_reduce(grads, group=self.group)",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error",
)
NCCL = (
    "[rank3] ERROR ProcessGroupNCCL: collective failed: NCCL error: remote process exited, NCCL 2.21.5",
    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
)


def _traceback(at: float, pod: str) -> tuple[Line, ...]:
    texts = (*NCCL, *TRACEBACK)
    return tuple(Line(at + 0.001 * number, pod, text) for number, text in enumerate(texts))


def _burst(start: float, end: float, pods: tuple[str, ...]) -> tuple[Line, ...]:
    text = "[rank{rank}] ERROR collective timed out: WorkNCCL(SeqNum=48213, OpType=ALLREDUCE) ran for {ms} ms"
    return tuple(
        Line(start + half / 2 + rank / 50, pod, text.format(rank=rank, ms=600_000 + 500 * half))
        for half in range(int(2 * (end - start)))
        for rank, pod in enumerate(pods)
    )


def demo() -> Play:
    """A run that is healthy, loses a pod to NCCL, idles, restarts, fills its VRAM, recovers and ends."""
    slow = Level(metric="gpu", value=0.31, pods="*-worker-1")
    climbing = Level(metric="vram", value=0.71, to=0.995, wobble=0.002)
    pretrain = TaskPlay(
        id="1234567890",
        name="pretrain-llama-70b",
        phases=(
            Phase(start=HISTORY, pods=FIRST_PODS, levels=BUSY),
            Phase(start=12, pods=FIRST_PODS[:3], levels=IDLE, chatter=0),
            Phase(start=38, status="Starting", reason="restarted by enableAutoRetry", chatter=0),
            Phase(start=41, pods=NEW_PODS, levels=(*BUSY, climbing)),
            Phase(start=61, pods=NEW_PODS, levels=(*BUSY, Level(metric="vram", value=0.993, wobble=0.004))),
            Phase(start=69, pods=NEW_PODS, levels=(*BUSY, slow)),
            Phase(start=82, pods=NEW_PODS, levels=BUSY),
            Phase(start=95, status="Succeeded", reason="completed", chatter=0),
        ),
        lines=(*_traceback(12, DEAD), *_burst(12.2, 18, FIRST_PODS[:3])),
    )
    queued = TaskPlay(
        id="0f8fad5b-d9cb-469f-a165-70867728950e",
        name="pretrain-eval-7b",
        phases=(
            Phase(start=HISTORY, status="Queueing", chatter=0),
            Phase(start=45, pods=("tn-77ab2cd-master-0",), levels=BUSY),
            Phase(start=75, status="Paused", reason="account balance below zero", chatter=0),
        ),
    )
    return Play(tasks=(pretrain, queued))


def calm() -> Play:
    """One healthy task with two small pods and a quiet log, for tests that script everything themselves."""
    return Play(
        tasks=(
            TaskPlay(
                id="1234567890",
                name="calm-run",
                gpus_per_pod=2,
                phases=(
                    Phase(start=HISTORY, pods=("calm-master-0", "calm-worker-0"), levels=BUSY, chatter=0),
                ),
            ),
        )
    )


PLAYS: Mapping[str, Callable[[], Play]] = {"demo": demo, "calm": calm}
