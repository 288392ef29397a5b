"""Starts the rehearsal alone in each interpreter of these tests, without the rest of the package.

The package's own __init__ would activate the shim, and what these tests look at is the plugin as it is.
"""

import os
import sys

if "flagos_shim" not in sys.modules:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    package = type(sys)("flagos_shim")
    package.__path__ = [os.path.join(root, "src", "flagos_shim")]
    sys.modules["flagos_shim"] = package
    from flagos_shim.rehearse import prepare

    os.environ["FLAGOS_SHIM_REHEARSE"] = "ascend"
    prepare("ascend", os.environ)
    del os.environ["FLAGOS_SHIM_REHEARSE"]  # or the installed start-up hook would activate the shim in children
