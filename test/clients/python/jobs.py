"""A Celery application, with a broker in files. As a program, it sends jobs, and waits until all are done."""

import os
import sys
import time

from celery import Celery

FOLDER = os.environ["JOBS_FOLDER"]
app = Celery(
    "jobs",
    broker="filesystem://",
    broker_transport_options={
        "data_folder_in": FOLDER, "data_folder_out": FOLDER, "control_folder": FOLDER + "/control",
    },
    worker_prefetch_multiplier=1,
)  # fmt: skip


@app.task(ignore_result=True)
def pack(order):
    with open(f"{FOLDER}/done-{order}", "x"):
        pass


if __name__ == "__main__":
    jobs = int(sys.argv[1])
    for order in range(jobs):
        pack.delay(order)
    while len([name for name in os.listdir(FOLDER) if name.startswith("done-")]) < jobs:
        time.sleep(0.05)
