"""StepStats as if they had been recorded: a call with two nodes in it, and two kernels that wait."""

from opkernel.proto import StepStats

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
START = 1_700_000_000_000_000_000  # in nanoseconds since the epoch
NODES = [  # label, thread, start, end, bytes of its output
    ("call = PartitionedCall(x)", 7, 0, 100_000, 8),
    ("call/a = Mul(call/x, call/x)", 7, 10_000, 40_000, 8),
    ("call/b = AddV2(call/a, call/a, ^wait_1)", 7, 40_000, 90_000, 8),
    ("wait_1 = Wait()", 0, 5_000, 30_000, 0),
    ("wait_2 = Wait()", 0, 20_000, 60_000, 0),
    ("[cpu 1.0MB 1.0MB] last = Neg(call:0, wait_2)", 7, 100_000, 150_000, 2**20),
]


def recorded_step(start: int = START) -> StepStats:
    """The step, begun at a time."""
    step = StepStats()
    device = step.dev_stats.add(device=DEVICE)
    device.thread_names[7] = "MainThread"
    for label, thread, begin, end, size in NODES:
        stats = device.node_stats.add(
            node_name=label.split(" = ")[0].split()[-1],
            timeline_label=label,
            thread_id=thread,
            scheduled_nanos=start + max(begin - 2_000, 0),
            all_start_nanos=start + begin,
            op_start_rel_nanos=1_000,
            op_end_rel_nanos=end - begin - 1_000,
            all_end_rel_nanos=end - begin,
        )
        if size:
            description = stats.output.add().tensor_description
            description.dtype = 1
            description.shape.dim.add(size=size // 4)
            description.allocation_description.requested_bytes = size
            memory = stats.memory.add(allocator_name="cpu", total_bytes=size)
            for at, change in ((end, size), (160_000, -size)):
                record = (start + at) // 1000
                memory.allocation_records.add(alloc_micros=record, alloc_bytes=change)
    return step
