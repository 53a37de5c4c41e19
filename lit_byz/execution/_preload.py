"""The imports of a task, made once by the process that a sweep's processes are forked from.

Does nothing elsewhere. In parts, as nobody needs them once the main process has gone.
"""

import atexit
import importlib
import os
import signal

MAIN = "LIT_BYZ_MAIN_PROCESS"  # a variable: the number of the process that this one works for
PARTS = (
    "torch",
    "torchvision",
    "lightning",
    "lit_byz.execution.task_run",
    "lit_byz.training.module",
    "lit_byz.training.callbacks",
    "mlflow.tracking",
    "mlflow.store.tracking.sqlalchemy_store",
    "matplotlib.figure",
)

if os.environ.get(MAIN) == str(os.getppid()):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what Ctrl-C means
    for part in PARTS:
        if os.environ[MAIN] != str(os.getppid()):
            os._exit(0)
        importlib.import_module(part)
    # Nothing here needs a farewell, which takes a second with so many modules.
    atexit.register(os._exit, 0)
