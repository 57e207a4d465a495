// SPDX-License-Identifier: BSD-2-Clause-Patent
//
// Loads tests/vectors/rocev1_frames.json: frames made by two independent generators, with every
// field spelled out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/wire_codec.hpp"

namespace roci::wirecodec {

/// A good frame and what its fields are.
struct Vector {
  std::string id;
  std::string name;
  Bytes bytes;   ///< without FCS
  Frame fields;  ///< as the file lists them; payload and pad by their place in the frame
  std::string transport;
  uint32_t icrc = 0;
  uint32_t fcs = 0;
};

/// A frame that a receiver must drop, or accept in spite of its looks.
struct NegativeVector {
  std::string id;
  std::string name;
  Bytes bytes;
  bool expect_accept = false;
  std::string reason;
};

/// Contents of the file.
struct VectorFile {
  std::vector<Vector> good;
  std::vector<NegativeVector> negative;
};

/// Loads the file. @throws std::exception if it is missing or not as expected
VectorFile load_vectors(const std::string& path);

/// Loads the project's file (the place is compiled in).
const VectorFile& vectors();

/// Bytes of a hex string. @throws std::invalid_argument
Bytes from_hex(const std::string& text);

}  // namespace roci::wirecodec
