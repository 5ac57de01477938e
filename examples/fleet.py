"""A fleet as a library: a learner that workers reach over Redis, and two workers that join it, here on one machine.

Run it: python examples/fleet.py [folder [steps]]. It needs redis-server or valkey-server and takes about a minute. On
another machine, `join(url, workers=2)` or the printed `souls join ...` line does the same, if it is served with
`RedisOptions(host="0.0.0.0", tls=True)`. Without Redis, `fleet.train(workers=2)` starts workers beside the learner.
"""

import sys
import threading

from soulsai.runtime import Fleet, RedisOptions, join

SETTINGS = ["run.final_fights=20", "run.evaluate_every_steps=0"]


def main(folder: str | None = None, steps: str = "20000") -> float:
    """Train a small agent and return what it earns in an episode."""
    stop = threading.Event()  # set it, from any thread, to save and stop
    fleet = Fleet.begin("cartpole-dqn", folder, [*SETTINGS, f"run.steps={steps}"], say=print, stop=stop.is_set)
    fleet.show = lambda progress: print(f"{progress.step:,} of {progress.steps:,} steps")  # noqa: T201
    with fleet.serve(RedisOptions(host="127.0.0.1")) as served:
        print(served.join_line)  # noqa: T201
        workers = threading.Thread(target=join, args=(served.url, 2), kwargs={"say": print, "stop": stop.is_set})
        workers.start()
        try:
            outcome = served.train()
        finally:
            if fleet.run.status().state != "finished":  # otherwise the learner tells them that the run is over
                stop.set()
    workers.join(60.0)
    assert outcome.mean_return is not None
    print(f"mean return {outcome.mean_return:.1f} in {fleet.run.folder}")  # noqa: T201
    return outcome.mean_return


if __name__ == "__main__":  # worker processes import this file
    main(*sys.argv[1:3])
