"""Chromium without a window, driven over a pipe: a page in any size, light or dark, its workers, and pictures of it."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe"),
)
READY = """new Promise(done => { const look = () =>
  document.documentElement.dataset.state === "ready" ? done(true) : setTimeout(look, 20); setTimeout(look, 100); })"""


class Chromium:
    """A browser with one page. Use it in a `with` block."""

    def __init__(
        self, width: int = 1280, height: int = 900, scheme: str = "light", motion: str = "no-preference"
    ) -> None:
        self.looks = width, height, scheme, motion
        self.numbers = itertools.count(1)
        self.seen: list[str] = []  # errors that the page reported
        self.left = b""

    def __enter__(self) -> "Chromium":
        self.profile = tempfile.mkdtemp()
        from_us, self.to = os.pipe()
        self.back, to_us = os.pipe()
        taken = [fcntl(one, F_DUPFD, 10) for one in (from_us, to_us)]  # Chromium reads from 3 and writes to 4
        pipes = ["bash", "-c", f'exec "$0" "$@" 3<&{taken[0]} 4>&{taken[1]}']
        call = [*pipes, str(BROWSER), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(call, pass_fds=taken, stdout=quiet, stderr=quiet)
        for one in (from_us, to_us, *taken):
            os.close(one)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        width, height, scheme, motion = self.looks
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self.call("Emulation.setEmulatedMedia", features=[{"name": n, "value": v} for n, v in features.items()])
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return what a method of the DevTools protocol answers."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.seen.append(str(answer["params"]["exceptionDetails"]))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def next_message(self) -> dict[str, Any]:
        """Return the next message of the browser."""
        while b"\0" not in self.left:
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended.")
            self.left += piece
        message, _, self.left = self.left.partition(b"\0")
        return dict(json.loads(message))

    def run(self, script: str) -> Any:
        """Return the value of an expression on the page, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def open(self, page: Path, address: str = "") -> None:
        """Open a page from a file and wait until all its runs are done."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page.resolve().as_uri() + address)
        self.wait()

    def wait(self) -> None:
        """Wait until the page says that it has nothing left to do."""
        self.run(READY)

    def press(self, key: str) -> None:
        """Press a key, such as "Tab" or "ArrowRight"."""
        codes = {"Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, " ": 32}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    def picture(self, target: Path, element: str | None = None, height: int | None = None) -> None:
        """Save the page, or one element of it, as a PNG; with a `height` only so much of it."""
        box = self.run(
            f"""(() => {{ const one = document.querySelector({json.dumps(element or "html")});
            const {{ x, y, width, height }} = one.getBoundingClientRect();
            return {{ x: x + scrollX, y: y + scrollY, width, height, scale: 1 }}; }})()"""
        )
        box["height"] = height or box["height"]
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=box)
        target.write_bytes(base64.b64decode(shot["data"]))
