"""The plays that come with the program: the demo's story, and a calm run for tests in a process.

Data only. Seconds are play seconds; history begins before 0, so that windows are covered at once.
"""

from collections.abc import Callable, Mapping

from watchdog.demo.play import Level, Line, Phase, Play, TaskPlay, Xid

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
        Line(start + 10 * number + rank / 50, pod, text.format(rank=rank, ms=600_000 + 10_000 * number))
        for number in range(int((end - start) / 10))
        for rank, pod in enumerate(pods)
    )


def demo() -> Play:
    """A run that is healthy, loses a pod to NCCL, idles, restarts, fills its VRAM, has a slow pod and ends.

    Written in minutes, at the pace of a real run: one point a minute, rules with windows of an hour.
    """
    slow = (
        Level(metric="gpu", value=0.31, pods="*-worker-1"),
        Level(metric="GpuTemp", value=93, pods="*-worker-1", gpus=(2, 3), wobble=1),
    )
    climbing = Level(metric="vram", value=0.71, to=0.985, wobble=0.002)
    full = Level(metric="vram", value=0.985, wobble=0.004)
    pretrain = TaskPlay(
        id="1234567890",
        name="pretrain-llama-70b",
        phases=(
            Phase(start=-LONG_BEFORE, pods=FIRST_PODS, levels=BUSY, chatter=CHATTER),
            Phase(start=CRASH, pods=FIRST_PODS[:3], levels=IDLE, chatter=0),
            Phase(
                start=RESTART, status="Starting", reason="restarted by enableAutoRetry", chatter=0, retries=1
            ),
            Phase(
                start=RESTART + 4 * MINUTE,
                pods=NEW_PODS,
                levels=(*BUSY, climbing, _leak(84)),
                chatter=CHATTER,
                retries=1,
            ),
            Phase(start=FULL, pods=NEW_PODS, levels=(*BUSY, full, _leak(110)), chatter=CHATTER, retries=1),
            Phase(start=RELIEF, pods=NEW_PODS, levels=(*BUSY, _leak(150)), chatter=CHATTER, retries=1),
            Phase(start=SLOW, pods=NEW_PODS, levels=(*BUSY, *slow, _leak(158)), chatter=CHATTER, retries=1),
            Phase(start=FAST, pods=NEW_PODS, levels=(*BUSY, _leak(185)), chatter=CHATTER, retries=1),
            Phase(start=END, status="Succeeded", reason="completed", chatter=0, retries=1),
        ),
        xids=(Xid(at=CRASH - 3 * MINUTE, pod=DEAD, gpu=5, code="79"),),
        lines=(*_traceback(CRASH, DEAD), *_burst(CRASH + 20, CRASH + 200, FIRST_PODS[:3])),
    )
    queued = TaskPlay(
        id="0f8fad5b-d9cb-469f-a165-70867728950e",
        name="pretrain-eval-7b",
        phases=(
            Phase(start=-LONG_BEFORE, status="Queueing", chatter=0),
            Phase(start=DEQUEUED, pods=("tn-77ab2cd-master-0",), levels=BUSY, chatter=CHATTER),
            Phase(start=PAUSED, status="Paused", reason="account balance below zero", chatter=0),
        ),
    )
    return Play(tasks=(pretrain, queued), step=60)


def _leak(minute: float) -> Level:
    """Host memory that grows by a tenth an hour, in the phase that begins at a minute."""
    ends = (84.0, 110.0, 150.0, 158.0, 185.0, 205.0)
    end = next(end for end in ends if end > minute)
    low, high = (0.52 + 0.1 * (at - 84) / 60 for at in (minute, end))
    return Level(metric="memory", value=low, to=high, wobble=0.003)


MINUTE = 60.0
LONG_BEFORE = 300 * MINUTE
CHATTER = 1 / 15  # lines a second and pod
CRASH = 12 * MINUTE
RESTART = 80 * MINUTE
FULL = 110 * MINUTE
DEQUEUED = 124 * MINUTE
RELIEF = 150 * MINUTE
SLOW = 158 * MINUTE
FAST = 185 * MINUTE
PAUSED = 190 * MINUTE
END = 205 * MINUTE

# What the audience is told; seconds from the curtain.
ACTS: tuple[tuple[float, str], ...] = (
    (0.0, "a run of 4 pods with 8 GPUs each is training; a second one waits in the queue"),
    (CRASH, "a pod dies with an NCCL error; the others wait for it, at 0 %"),
    (RESTART, "the cloud starts the run anew, with new pods"),
    (FULL, "VRAM has climbed to 98 %"),
    (DEQUEUED, "the second run leaves the queue"),
    (RELIEF, "VRAM is back to normal"),
    (SLOW, "one pod becomes slow"),
    (FAST, "and fast again; its host memory has been growing for a while"),
    (PAUSED, "the cloud stops the second run: the account is overdrawn"),
    (END, "the first run has succeeded"),
)


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
