// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Command line, reports and latency of nicsim, without simulation.
#include "nicsim/latency.hpp"
#include "nicsim/options.hpp"
#include "nicsim/report.hpp"

#include <roci_hwif.hpp>

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

using namespace roci;
using namespace roci::sim;

namespace {

Options parse(std::vector<std::string> words) { return parse_options(words); }

std::string refusal(std::vector<std::string> words) {
  try {
    parse_options(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

uint64_t sq_doorbell(uint32_t qpn, uint16_t index) {
  hwif::Doorbell doorbell{};
  doorbell.set<hwif::Doorbell::kind>(hwif::DoorbellKind::SQ);
  doorbell.set<hwif::Doorbell::object>(qpn);
  doorbell.set<hwif::Doorbell::index>(index);
  return doorbell.to_word();
}

std::vector<uint8_t> cqe(uint32_t qpn, uint16_t index,
                         hwif::CqeOpcode opcode = hwif::CqeOpcode::WRITE) {
  hwif::Cqe entry{};
  entry.set<hwif::Cqe::qpn>(qpn);
  entry.set<hwif::Cqe::opcode>(opcode);
  entry.set<hwif::Cqe::wqe_index_or_cookie>(index);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&entry);
  return {bytes, bytes + sizeof entry};
}

}  // namespace

TEST_CASE("a refused number is told with its range, as people write numbers") {
  CHECK(refusal({"run", "--latency", "-1", "--", "true"}) ==
        "--latency -1: not a number from 0 to 1000000000");
  CHECK(refusal({"run", "--rate", "many", "--", "true"}).find("not a number from ") !=
        std::string::npos);
}

TEST_CASE("stats: where, how, how often") {
  const Options once = parse({"stats"});
  CHECK(once.command == Command::stats);
  CHECK(once.folder.empty());
  CHECK_FALSE(once.json);
  CHECK_FALSE(once.watch_s);
  const Options often = parse({"stats", "--watch", "--dir", "/tmp/x", "--json"});
  CHECK(often.watch_s == 1.0);
  CHECK(often.folder == "/tmp/x");
  CHECK(often.json);
  CHECK(parse({"stats", "--watch=0.5"}).watch_s == 0.5);
  CHECK(refusal({"stats", "--watch=0"}).find("not a number from 0.1") != std::string::npos);
  CHECK(refusal({"stats", "--json=1"}) == "--json takes no value");
  CHECK(refusal({"stats", "--nics", "2"}) == "--nics: stats has no such option");
  CHECK(refusal({"stats", "prog"}) == "prog: stats takes no program");
  CHECK(refusal({"run", "--dir", "x", "--", "true"}) == "--dir: run has no such option");
}

TEST_CASE("foreign ports: behind the NICs, at a switch; each place once") {
  const Options o = parse({"serve", "--nics", "2", "--foreign", "/tmp/a", "--foreign=b",
                           "--foreign-quiet", "0.5"});
  CHECK(o.foreign == std::vector<std::string>{"/tmp/a", "b"});
  CHECK(o.foreign_quiet_ms == 0.5);
  CHECK(o.fabric().ports == 4);
  CHECK(o.fabric().topology == Topology::switched);
  const Options lone = parse({"run", "--nics", "1", "--foreign", "a", "--", "true"});
  CHECK(lone.foreign_quiet_ms == 20);
  CHECK(lone.fabric().ports == 2);
  CHECK(lone.fabric().topology == Topology::switched);  // so that it learns
  CHECK(parse({"run", "--", "true"}).fabric().topology == Topology::automatic);
  CHECK(refusal({"serve", "--foreign", "/tmp/a", "--foreign", "/tmp/../tmp/a"}).find("twice") !=
        std::string::npos);
  CHECK(refusal({"serve", "--pcap", "/tmp/a", "--foreign", "/tmp/a"}).find("written") !=
        std::string::npos);
  CHECK(refusal({"serve", "--foreign-quiet", "-1"}).find("not a number from 0") !=
        std::string::npos);
  CHECK(refusal({"inject", "--pcap", "x", "--report", "y", "--foreign", "a"}) ==
        "--foreign: inject has no such option");
}

TEST_CASE("defaults are those of the design") {
  const Options o = parse({"run", "--", "prog", "--loss", "x"});
  CHECK(o.command == Command::run);
  CHECK(o.program == std::vector<std::string>{"prog", "--loss", "x"});
  CHECK(o.seed == 1);
  CHECK_FALSE(o.pair);
  CHECK(o.skip_time);
  CHECK(o.ns_per_cycle() == 4);
  CHECK(o.fabric().link.rate.bytes == 50);
  CHECK(o.fabric().link.rate.cycles == 1);
  CHECK(o.fabric().link.latency == 125);
  CHECK(o.fabric().link.reorder_hold_cycles == 2500);
  CHECK(o.memory().read_latency == 250);
  CHECK(o.memory().write_latency == 100);
  const Options narrow = parse({"serve", "--config=narrow"});
  CHECK(narrow.ns_per_cycle() == 8);
  CHECK(narrow.fabric().link.rate.bytes == 8);
  CHECK(narrow.fabric().link.latency == 63);  // 62.5 rounded
  CHECK(narrow.fabric().link.reorder_hold_cycles == 1250);
  CHECK(narrow.memory().read_latency == 125);
  CHECK(narrow.memory().write_latency == 50);
}

TEST_CASE("every option has its effect") {
  const Options o = parse({"run", "--nics", "3", "--pair", "--seed", "0x10", "--loss", "1%",
                           "--dup=0.25", "--reorder", "100%", "--corrupt", "0", "--latency", "40",
                           "--memory-latency", "2000", "--rate", "0.5", "--no-skip", "--pcap", "a",
                           "--report=b", "prog"});
  CHECK(o.nics == 3);
  CHECK(o.pair);
  CHECK(o.seed == 16);
  CHECK(o.loss == Approx(0.01));
  const FabricConfig fabric = o.fabric();
  CHECK(fabric.seed == 16);
  CHECK(fabric.link.impairments.drop == Approx(0.01));
  CHECK(fabric.link.impairments.duplicate == 0.25);
  CHECK(fabric.link.impairments.reorder == 1);
  CHECK(fabric.link.impairments.corrupt == 0);
  CHECK(fabric.link.latency == 10);
  CHECK(fabric.link.rate.bytes == 1);
  CHECK(fabric.link.rate.cycles == 2);
  CHECK(o.memory().read_latency == 500);
  CHECK(o.memory().write_latency == 200);
  CHECK_FALSE(o.skip_time);
  CHECK(o.pcap == "a");
  CHECK(o.report == "b");
  CHECK(parse({"serve", "--dir", "/x"}).folder == "/x");
  const Options i = parse({"inject", "--pcap", "a", "--report", "b", "--mac", "02:00:00:00:0a:ff",
                           "--gid", "::ffff:10.0.0.1"});
  CHECK(i.mac == 0x020000000affu);
  CHECK((*i.gid)[10] == 0xff);
  CHECK((*i.gid)[15] == 1);
}

TEST_CASE("a number with a zero in front is decimal") {
  CHECK(parse({"serve", "--nics", "010"}).nics == 10);
  CHECK(parse({"serve", "--nics", "08"}).nics == 8);
  CHECK(parse({"serve", "--seed", "0X1f"}).seed == 31);
}

TEST_CASE("one file for both outputs: links are seen, devices take both") {
  char name[] = "/tmp/nicsim-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  std::ofstream(folder + "/frames") << "frames";
  std::filesystem::create_symlink("frames", folder + "/link");
  const auto inject = [](const std::string& pcap, const std::string& report) {
    return std::vector<std::string>{"inject", "--pcap", pcap, "--report", report};
  };
  CHECK(refusal(inject(folder + "/frames", folder + "/link")).find("both") != std::string::npos);
  CHECK(refusal(inject(folder + "/new", folder + "/../" + folder.substr(5) + "/new")).find("both") !=
        std::string::npos);
  CHECK(parse(inject(folder + "/frames", folder + "/report")).report == folder + "/report");
  CHECK(parse({"run", "--pcap", "/dev/null", "--report", "/dev/null", "p"}).pcap == "/dev/null");
  std::filesystem::remove_all(folder);
}

TEST_CASE("what is wrong is named") {
  CHECK(refusal({}).find("subcommand") != std::string::npos);
  CHECK(refusal({"walk"}).find("walk") != std::string::npos);
  CHECK(refusal({"run"}).find("no program") != std::string::npos);
  CHECK(refusal({"run", "--"}).find("no program") != std::string::npos);
  CHECK(refusal({"run", "--nics", "1", "--pair", "p"}).find("--pair") != std::string::npos);
  CHECK(refusal({"serve", "--pair"}).find("--pair") != std::string::npos);
  CHECK(refusal({"serve", "prog"}).find("prog") != std::string::npos);
  CHECK(refusal({"run", "--dir", "x", "p"}).find("--dir") != std::string::npos);
  CHECK(refusal({"serve", "--nics"}).find("missing") != std::string::npos);
  CHECK(refusal({"serve", "--no-skip=1"}).find("no value") != std::string::npos);
  CHECK(refusal({"inject", "--report", "b"}).find("--pcap") != std::string::npos);
  CHECK(refusal({"inject", "--pcap", "b"}).find("--report") != std::string::npos);
  CHECK(refusal({"inject", "--pcap", "b", "--report", "./b"}).find("both are ./b") !=
        std::string::npos);
  CHECK(refusal({"run", "--pcap", "b", "--report", "b", "p"}).find("both") != std::string::npos);
  for (const char* bad : {"0", "65", "-1", "x", "1x", "", "1.5", "0x", "08x", "+1"}) {
    INFO(bad);
    CHECK(refusal({"serve", "--nics", bad}).find("--nics") != std::string::npos);
  }
  for (const char* bad : {"101%", "1.1", "-0.1", "%", "x", "nan"}) {
    INFO(bad);
    CHECK(refusal({"serve", "--loss", bad}).find("--loss") != std::string::npos);
  }
  CHECK_FALSE(refusal({"serve", "--config", "broad"}).empty());
  CHECK_FALSE(refusal({"serve", "--rate", "65"}).empty());
  CHECK_FALSE(refusal({"serve", "--config", "narrow", "--rate", "9"}).empty());
  CHECK_FALSE(refusal({"serve", "--latency", "-1"}).empty());
  for (const char* bad : {"02:00", "02:00:00:00:00:0g", "02:00:00:00:00:001", "2:0:0:0:0:1"}) {
    INFO(bad);
    CHECK_FALSE(refusal({"inject", "--pcap", "a", "--report", "b", "--mac", bad}).empty());
  }
  CHECK_FALSE(refusal({"inject", "--pcap", "a", "--report", "b", "--gid", "10.0.0.1"}).empty());
  for (const char* gid : {"::", "ff02::1", "ff0e::ffff:10.0.0.1"}) {
    INFO(gid);
    CHECK(refusal({"inject", "--pcap", "a", "--report", "b", "--gid", gid}).find("--gid") !=
          std::string::npos);
  }
}

TEST_CASE("--help of each, also with a wrong rest") {
  CHECK(parse({"--help"}).command == Command::help);
  for (const char* name : {"run", "serve", "inject"}) {
    const Options o = parse({name, "--help"});
    CHECK(o.command == Command::help);
    CHECK(usage(o.help_about).find(std::string("nicsim ") + name) == 0);
  }
  CHECK(usage(Command::help).find("nicsim") == 0);
}

TEST_CASE("latency: from the first doorbell that covers a request") {
  LatencyMeter meter;
  const uint32_t page = hwif::csr::DoorbellPage::ADDRESS;
  meter.written(1, page, sq_doorbell(5, 2), 100);
  meter.written(1, page, sq_doorbell(5, 4), 150);
  meter.written(1, 0, sq_doorbell(5, 9), 10);      // a register
  meter.written(2, page, sq_doorbell(6, 1), 170);
  meter.stored(1, cqe(5, 0), 300);
  meter.stored(1, cqe(5, 3), 310);
  meter.stored(1, cqe(5, 4), 320);                                  // never posted
  meter.stored(1, cqe(6, 0), 330);                                  // of another function
  meter.stored(2, cqe(6, 0, hwif::CqeOpcode::RECV), 340);           // receive side
  meter.stored(2, std::vector<uint8_t>(16), 350);
  CHECK(meter.samples() == std::vector<uint64_t>{200, 160});
  meter.stored(2, cqe(6, 0), 400);
  CHECK(meter.samples().back() == 230);
  // across the wrap of the index
  meter.written(3, page, sq_doorbell(7, 1), 1000);
  meter.stored(3, cqe(7, 0xffff), 1007);
  CHECK(meter.samples().back() == 7);
}

TEST_CASE("latency: what is gone is forgotten, and queue pairs without end are too many") {
  LatencyMeter meter;
  const uint32_t page = hwif::csr::DoorbellPage::ADDRESS;
  meter.written(1, page, sq_doorbell(5, 1), 100);
  meter.written(2, page, sq_doorbell(5, 1), 200);
  CHECK(meter.queues() == 2);
  meter.left(1);
  CHECK(meter.queues() == 1);
  meter.stored(1, cqe(5, 0), 300);  // its successor's would be another
  CHECK(meter.samples().empty());
  meter.stored(2, cqe(5, 0), 300);
  CHECK(meter.samples() == std::vector<uint64_t>{100});
  for (uint32_t qpn = 0; qpn < 100000; ++qpn) {
    meter.written(3, page, sq_doorbell(qpn, 1), qpn);
    REQUIRE(meter.queues() <= 4096);
    if (qpn % 2 == 0) meter.stored(3, cqe(qpn, 0), qpn + 7);
  }
  CHECK(meter.samples().size() == 1 + 50000);
  CHECK(meter.samples().back() == 7);
}

TEST_CASE("summary of samples") {
  CHECK(summarise({}).count == 0);
  const auto odd = summarise({9, 1, 5});
  CHECK(odd.min == 1);
  CHECK(odd.median == 5);
  CHECK(odd.max == 9);
  CHECK(odd.count == 3);
  CHECK(summarise({4, 2, 3, 1}).median == 2);  // of two in the middle the lower
}

TEST_CASE("report has the fields that others read") {
  RunReport report;
  report.seed = 3;
  report.simulated_ns = 400;
  report.cycles = 100;
  report.wall_s = 1.25;
  report.programs = {{{"a\"b", "\n\xff\xc3\xa4"}, 130}};
  report.nics = {{{{"rx_frames", 7}}, {1, 2, 3, 4}}};
  LinkCounters link;
  link.frames = 5;
  link.corrupted = 1;
  report.links = {link};
  CHECK(to_json(report) ==
        "{\"seed\":3,\"simulated_ns\":400,\"cycles\":100,\"wall_s\":1.250,"
        "\"programs\":[{\"argv\":[\"a\\\"b\",\"\\u000a\\ufffd\xc3\xa4\"],\"exit\":130}],"
        "\"nics\":[{\"counters\":{\"rx_frames\":7},"
        "\"post_to_cqe_ns\":{\"min\":1,\"median\":2,\"max\":3,\"count\":4}}],"
        "\"links\":[{\"frames\":5,\"dropped\":0,\"duplicated\":0,\"reordered\":0,"
        "\"corrupted\":1}]}\n");
  // at the end, only if there is one
  report.foreign = {{"/a\"b", {1, 2, 3, 4, 5, 6, 7, 8}}};
  const std::string text = to_json(report);
  const std::string tail =
      "\"corrupted\":1}],\"foreign\":[{\"path\":\"/a\\\"b\",\"received\":1,\"sent\":2,"
      "\"dropped\":{\"no_peer\":3,\"full\":4,\"bad_fcs\":5,\"runt\":6,\"oversize\":7,"
      "\"stranger\":8}}]}\n";
  REQUIRE(text.size() > tail.size());
  CHECK(text.substr(text.size() - tail.size()) == tail);
  CHECK(to_json(std::vector<FrameFate>{{true, "", ""}, {false, "rx_drop_icrc", "bad ICRC"}}) ==
        "{\"accepted\":1,\"dropped\":1,\"frames\":["
        "{\"index\":0,\"fate\":\"accepted\",\"counter\":null,\"reason\":\"\"},"
        "{\"index\":1,\"fate\":\"dropped\",\"counter\":\"rx_drop_icrc\",\"reason\":\"bad ICRC\"}]}"
        "\n");
  CHECK_THROWS(write_file("/no/such/folder/x", "text"));
}
