"""The pure parts of peer_cpu.py. Run by ctest; or: python3 -m unittest discover -s tests/bench -p '*_test.py'"""
import pathlib
import struct
import tempfile
import unittest

import peer_cpu_report as report
import random_gguf
from peer_cpu_tests import TESTS, batched, deep, decode, prefill

LIMITS = {"read_bytes_per_second": 40e9, "fp32_ops_per_second": 200e9,
          "int8_ops_per_second": 400e9, "int4_ops_per_second": 600e9, "threads": 2}
WORK = {"bytes": 4e9, "fp32_ops": 0.0, "int8_ops": 0.0, "int4_ops": 6e9}


def cell(test="decode", quant="q4_0", hexad=(10.0,), peer=(5.0,), others=0.0, work=None):
    def samples(rates):
        return [{"rate": r, "others": others} for r in rates]
    return {"model": "m", "quant": quant, "test": test, "tokens": 1, "work": work or WORK,
            "numerics": "n", "flags": ["-fa", "off"], "hexad": samples(hexad),
            "peer": samples(peer)}


class ReportTest(unittest.TestCase):
    def test_limit_is_memory_or_arithmetic(self):
        self.assertAlmostEqual(report.limit_seconds(WORK, LIMITS), 0.1)
        slow = dict(WORK, int4_ops=120e9, fp32_ops=20e9)
        self.assertAlmostEqual(report.limit_seconds(slow, LIMITS), 0.3)
        unknown = dict(LIMITS, int4_ops_per_second=0)
        self.assertAlmostEqual(report.limit_seconds(slow, unknown), 0.1)

    def test_median_leaves_disturbed_samples_out(self):
        samples = [{"rate": 1.0, "others": 0.5}, {"rate": 8.0, "others": 0.01},
                   {"rate": 9.0, "others": 0.0}, {"rate": 10.0, "others": 0.0}]
        self.assertEqual(report.median_rate(samples), 9.0)
        self.assertEqual(report.median_rate(samples[:1]), 1.0)

    def test_row_passes_by_ratio_or_share(self):
        slower = report.summarise(cell(hexad=(8.2,), peer=(9.0,)), LIMITS)
        self.assertAlmostEqual(slower["share"], 0.82)
        self.assertTrue(slower["passes"])
        self.assertFalse(report.summarise(cell(hexad=(7.0,), peer=(9.0,)), LIMITS)["passes"])
        self.assertTrue(report.summarise(cell(hexad=(2.0,), peer=(2.1,)), LIMITS)["passes"])
        self.assertEqual(report.summarise(cell(others=0.2), LIMITS)["disturbed"], 2)

    def test_means_are_over_quantised_types(self):
        rows = [report.summarise(c, LIMITS)
                for c in (cell(hexad=(4.0,), peer=(1.0,)), cell(quant="q8_0", hexad=(1.0,),
                          peer=(1.0,)), cell(quant="f16", hexad=(1.0,), peer=(9.0,)))]
        (test, mean, target, met), = report.means(rows)
        self.assertEqual((test, target, met), ("decode", 1.5, True))
        self.assertAlmostEqual(mean, 2.0)

    def test_remarks(self):
        rows = [report.summarise(cell("batch %d" % b, hexad=(rate,)), LIMITS)
                for b, rate in ((4, 40.0), (5, 30.0), (6, 60.0), (7, 60.0))]
        said = report.remarks(rows)
        self.assertEqual([line.split(":")[0] for line in said], ["MISSED", "ok", "ok"])
        rows = [report.summarise(cell("prefill", quant, hexad=(rate,), peer=(50.0,)), LIMITS)
                for quant, rate in (("q4_0", 40.0), ("f16", 60.0))]
        self.assertIn("MISSED: prefill m q4_0 40.0 against the peer's f16 50.0",
                      report.remarks(rows))
        self.assertIn("q4_0", report.table(rows, LIMITS))


class TestsTest(unittest.TestCase):
    def test_words_for_the_peer(self):
        self.assertEqual(decode(32).peer_arguments(2)[-6:], ["-p", "0", "-n", "32,32", "-d", "0"])
        self.assertEqual(deep().peer_arguments(1)[-2:], ["-d", "4096"])
        self.assertIn("--no-warmup", prefill().peer_arguments(1))
        words = batched(32).peer_arguments(3)
        self.assertEqual(words[words.index("-npl") + 1], "32,32,32")
        self.assertEqual(words[words.index("-c") + 1], "512")  # 128 + 32 x 8, to a multiple of 256

    def test_both_engines_do_the_same(self):
        for test in [t for tests in TESTS.values() for t in tests]:
            fields = dict(f.split("=") for f in test.hexad.split(":")[1:])
            self.assertEqual(int(fields["tokens"]) * int(fields.get("batch", 1)), test.tokens)


class RandomGgufTest(unittest.TestCase):
    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tiny.gguf"
            random_gguf.write("tiny", path)
            data = path.read_bytes()
        self.assertEqual(struct.unpack("<4sIQQ", data[:24]), (b"GGUF", 3, 20, 19))
        shape = random_gguf.SHAPES["tiny"]
        size = sum(random_gguf.tensor_bytes(d, v) for _, d, v in random_gguf.tensors(shape))
        self.assertTrue(size < len(data) < size + 100_000)
        self.assertEqual(len(data) % random_gguf.ALIGNMENT, 0)
        self.assertEqual(len(set(random_gguf.byte_tokens())), 256)


if __name__ == "__main__":
    unittest.main()
