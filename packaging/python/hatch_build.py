"""Says which machines the wheel is for: the program in it is not Python."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['PYKEEP_WHEEL_PLATFORM']}"
