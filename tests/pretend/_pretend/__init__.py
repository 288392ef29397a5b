"""What the pretend vendor packages share: the C++ device, its start, and the Python modules of a torch plugin.

``torch_mlu`` and ``torch_musa`` beside this folder are thin: a ``Vendor`` record and the names that are theirs alone.
The modules in ``api/`` are loaded inside the vendor's package (see ``vendor.mount``), so that their ``__name__`` begins
with the plugin's name, as that of the real plugin's code does. With this folder's parent on ``PYTHONPATH``::

    python -c "import torch, torch_mlu; print(torch.ones(2, device='mlu') + 1)"

Variables, read when the package is imported:

=====================  =================================================================================================
PRETEND_DEVICES        devices in the machine (2)
PRETEND_MEMORY_MB      memory of each (1024)
PRETEND_UNSUPPORTED    operators left to the vendor's CPU fallback, without overloads: ``_softmax,mm``
PRETEND_FAIL           error injection, ``function=text;function=text``. Functions: ``init``, ``set_device``, ``malloc``
                       (a new segment), ``malloc_host``, ``memcpy``, ``launch`` (any operator), an operator's name,
                       ``synchronize``, ``stream_create``, ``stream_synchronize``, ``event_record``,
                       ``event_synchronize``, ``collective`` (any), ``allreduce`` and the like
PRETEND_OLD_OOM        1: out of memory in the words and the class (RuntimeError) of older plugin builds
PRETEND_CACHE          folder of the compiled device
=====================  =================================================================================================

What it is not: a model of speed, of numerics (kernels are the CPU's) or of asynchrony (every call is done at once).
Sparse and quantized tensors have no kernels on it. Compiled against torch 2.13's headers.
"""

from __future__ import annotations
