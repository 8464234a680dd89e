"""silero-vad over ten seconds of synthetic speech, its state carried from window to window, as ONNX Runtime runs it."""

import pathlib
import subprocess
import tempfile
import unittest
import wave

import numpy as np

import support

RATE = 16000
WINDOW = 512
CONTEXT = 64  # samples of the window before, put in front of each
SECONDS = 10
MAX_DIFFERENCE = 1e-4
SPEECH = 0.5

TEXT = (
    "This is a recording made by a machine. It speaks a few sentences, then it waits. "
    "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. "
    "After that it counts: one, two, three, four, five, six, seven, eight, nine, ten."
)


def speak(text):
    """Mono float32 samples at RATE, by espeak-ng."""
    with tempfile.TemporaryDirectory(prefix="rlx-test-") as folder:
        path = pathlib.Path(folder) / "speech.wav"
        subprocess.run(["espeak-ng", "-w", path, text], check=True, stdin=subprocess.DEVNULL)
        with wave.open(str(path)) as file:
            rate = file.getframerate()
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
    wanted = np.arange(int(len(samples) * RATE / rate)) * rate / RATE
    return np.interp(wanted, np.arange(len(samples)), samples).astype(np.float32)


def clip():
    """SECONDS of audio: silence, speech, silence again."""
    samples = np.zeros(RATE * SECONDS, np.float32)
    speech = speak(TEXT)[: RATE * (SECONDS - 3)]
    samples[RATE : RATE + len(speech)] = speech
    return samples


def windows(samples):
    before = np.zeros(CONTEXT, np.float32)
    for begin in range(0, len(samples) - WINDOW + 1, WINDOW):
        window = samples[begin : begin + WINDOW]
        yield np.concatenate([before, window])[np.newaxis]
        before = window[-CONTEXT:]


def probabilities(samples, run):
    """Speech probability of each window and the last state; `run` maps feeds to outputs."""
    state = np.zeros((2, 1, 128), np.float32)
    found = []
    for window in windows(samples):
        outputs = run({"input": window, "state": state, "sr": np.array(RATE, np.int64)})
        state = outputs["stateN"]
        found.append(outputs["output"])
    return np.concatenate(found), state


class SileroVad(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = support.model_path("silero-vad/silero_vad.onnx")
        cls.session = support.ort_session(cls.model)
        cls.samples = clip()

    def test_every_window_of_the_clip(self):
        expected, expected_state = probabilities(self.samples, lambda feeds: support.ort_run(self.session, feeds))
        labels = expected > SPEECH
        self.assertTrue(labels.any() and not labels.all(), "the clip must have speech and silence")
        actual, state = probabilities(self.samples, lambda feeds: support.rlx_run(self.model, feeds))
        support.assert_close(self, actual, expected, MAX_DIFFERENCE, "speech probability")
        support.assert_close(self, state, expected_state, MAX_DIFFERENCE, "state after the last window")
        self.assertTrue(np.array_equal(actual > SPEECH, labels))

    def test_half_the_rate(self):
        window = np.concatenate([np.zeros(32, np.float32), self.samples[RATE : RATE + 256]])[np.newaxis]
        feeds = {"input": window, "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(RATE // 2, np.int64)}
        expected = support.ort_run(self.session, feeds)
        actual = support.rlx_run(self.model, feeds)
        for name in ("output", "stateN"):
            support.assert_close(self, actual[name], expected[name], MAX_DIFFERENCE, name)


if __name__ == "__main__":
    unittest.main()
