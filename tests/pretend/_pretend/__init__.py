"""What the pretend vendor packages share: the C++ device, its start, and the Python modules of a torch plugin.

``torch_mlu`` and ``torch_musa`` beside this folder are thin: a ``Vendor`` record and the names that are theirs alone.
The modules in ``api/`` are loaded inside the vendor's package (see ``mount``), so that their ``__name__`` begins with
the plugin's name, as that of the real plugin's code does.
"""

from __future__ import annotations
